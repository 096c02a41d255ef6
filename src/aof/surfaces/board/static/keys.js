// Everything by keyboard. Single keys can be switched off in the help.

const items = () => [...document.querySelectorAll("#view [data-item]")];
const focusOf = (item) => item.querySelector("a.card-title, a.need-title") ?? item.querySelector("a") ?? item;
const current = () => document.activeElement?.closest?.("[data-item]") ?? document.querySelector("article[data-item]");
let after = "";

export function start() {
  const box = document.getElementById("shortcuts");
  let on = true;
  try { on = localStorage.getItem("aof-shortcuts") !== "off"; } catch { /* storage is switched off */ }
  if (box) {
    box.checked = on;
    box.addEventListener("change", () => {
      on = box.checked;
      try { localStorage.setItem("aof-shortcuts", on ? "on" : "off"); } catch { /* as above */ }
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]")) return;
    const field = event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");
    if (field) {
      if (event.key === "Escape") field.blur();
      return;
    }
    if (event.key.startsWith("Arrow")) return arrow(event);
    if (on && event.key.length === 1) single(event);
  });
}

function single(event) {
  const key = event.key;
  if (after === "g") {
    after = "";
    const link = document.querySelector(`nav a[data-key="${CSS.escape(key)}"]`);
    if (link) {
      event.preventDefault();
      link.click();
    }
    return;
  }
  const item = current();
  const acts = { a: "approve", r: "reject", m: "move", e: "edit" };
  if (key === "g") after = "g";
  else if (key === "/") document.getElementById("search")?.focus();
  else if (key === "?") document.getElementById("help").showModal();
  else if (key === "c") document.querySelector("[data-shortcut=c]")?.click();
  else if (key === "x" && item) item.querySelector("input[name=pick]")?.click();
  else if (acts[key] && item) act(item, acts[key]);
  else return;
  if (key !== "g") after = "";
  event.preventDefault();
}

// The item's own link for the action, else the dialog by its address: the server says whether it may be done.
function act(item, action) {
  const link = item.querySelector(`[data-action="${action}"]`);
  if (link?.matches("button")) return (link.form.querySelector("textarea") ?? link).focus(); // in place: Enter does it
  if (link) return link.click();
  const where = action === "move" ? "move" : `do/${action}`;
  return htmx.ajax("GET", `/board/tasks/${encodeURIComponent(item.dataset.task)}/${where}`, { target: "#dialog" });
}

function arrow(event) {
  const all = items();
  if (!all.length || event.target.closest("pre, .scroll")) return;
  const here = document.activeElement?.closest?.("[data-item]");
  let next = null;
  if (!here || !all.includes(here)) next = all[0];
  else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const list = [...here.parentElement.querySelectorAll(":scope > [data-item]")];
    next = list[list.indexOf(here) + (event.key === "ArrowDown" ? 1 : -1)];
  } else {
    const columns = [...document.querySelectorAll("[data-column]")].filter((one) => one.querySelector("[data-item]"));
    const place = columns.indexOf(here.parentElement);
    const to = columns[place + (event.key === "ArrowRight" ? 1 : -1)];
    const row = [...here.parentElement.querySelectorAll("[data-item]")].indexOf(here);
    const there = to ? [...to.querySelectorAll("[data-item]")] : [];
    next = there[Math.min(row, there.length - 1)];
  }
  if (!next) return;
  event.preventDefault();
  focusOf(next).focus();
}
