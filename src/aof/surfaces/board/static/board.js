// The page's own behaviour, a module per subject.
import * as columns from "./columns.js";
import * as dialogs from "./dialogs.js";
import * as drag from "./drag.js";
import * as keys from "./keys.js";
import * as live from "./live.js";
import * as past from "./past.js";
import * as selection from "./selection.js";
import * as session from "./session.js";
import * as verified from "./verified.js";

const STEPS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
const THEMES = ["auto", "light", "dark"];

function span(milliseconds) {
  const seconds = Math.floor(Math.abs(milliseconds) / 1000);
  const [size, unit] = STEPS.find(([one]) => seconds >= one) ?? [1, "s"];
  return `${Math.floor(seconds / size)} ${unit}`;
}

function tick() {
  const present = Date.now();
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const at = Date.parse(time.dateTime);
    const said = at <= present ? `${span(present - at)} ago` : `in ${span(at - present)}`;
    if (time.textContent !== said) time.textContent = said;
  }
}

function theme() {
  const button = document.querySelector("[data-theme-switch]");
  if (!button) return;
  const root = document.documentElement;
  const show = () => { button.querySelector("span").textContent = root.dataset.theme ?? "auto"; };
  show();
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "auto") + 1) % THEMES.length];
    if (next === "auto") delete root.dataset.theme;
    else root.dataset.theme = next;
    try { localStorage.setItem("aof-theme", next); } catch { /* storage is switched off */ }
    show();
  });
}

theme();
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
if (document.getElementById("connection")) {
  session.start();
  columns.start();
  dialogs.start();
  keys.start();
  selection.start();
  drag.start();
  past.start();
  verified.start();
  live.start();
  setInterval(tick, 15000);
}
