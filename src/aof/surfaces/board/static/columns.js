// The board's filters and columns. All of it is in the address; which columns are open is remembered beside.
import { now } from "./live.js";

const REMEMBERED = "aof-open";

export function start() {
  document.addEventListener("click", (event) => {
    const fold = event.target.closest("[data-fold]");
    if (fold) fold.setAttribute("aria-expanded", String(fold.getAttribute("aria-expanded") !== "true"));
    const column = event.target.closest("[data-open]");
    if (column) remember(new URL(column.href).searchParams.get("open") ?? "");
  });
  // What is completed from a list applies when it is whole, not only when the field is left.
  document.addEventListener("input", ({ target }) => {
    if (target.form?.id !== "filters" || !target.list) return;
    const whole = !target.value || [...target.list.options].some((one) => one.value === target.value);
    if (whole) target.dispatchEvent(new Event("change", { bubbles: true }));
  });
  // An address that is shared says only what was chosen.
  document.addEventListener("formdata", ({ target, formData }) => {
    if (target.id !== "filters") return;
    for (const [name, value] of [...formData]) if (!value) formData.delete(name);
  });
  open();
}

function remember(columns) {
  try { localStorage.setItem(REMEMBERED, columns); } catch { /* storage is switched off */ }
}

function open() {
  if (document.getElementById("view").dataset.view !== "board" || location.search) return;
  let columns = "";
  try { columns = localStorage.getItem(REMEMBERED) ?? ""; } catch { /* as above */ }
  if (!columns) return;
  history.replaceState(history.state, "", `${location.pathname}?${new URLSearchParams({ open: columns })}`);
  now();
}
