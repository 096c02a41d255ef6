// Dialogs, what they say when they are done, and notices. Text is never taken for HTML here.
import { now } from "./live.js";

const dialog = document.getElementById("dialog");
const toasts = document.getElementById("toasts");

export function start() {
  document.addEventListener("htmx:after:swap", (event) => {
    const { target } = event.detail.ctx;
    if (!dialog.contains(typeof target === "string" ? document.querySelector(target) : target)) return;
    if (dialog.childElementCount && !dialog.open) dialog.showModal();
    const first = dialog.querySelector("[role=alert], [autofocus], textarea, input:not([type=hidden]), select, button");
    if (dialog.open && !dialog.contains(document.activeElement)) first?.focus();
  });
  document.addEventListener("aof:done", (event) => {
    const { text, warning } = event.detail;
    const form = event.target.closest?.("form");
    if (form?.dataset.inline !== undefined) {
      form.reset();
      delete form.dataset.dirty;
      form.querySelector("[id$=-problem]")?.replaceChildren();
    }
    dialog.dataset.done = "yes";
    dialog.replaceChildren(); // the event "close" comes later, and what is swapped meanwhile must not open it again
    if (dialog.open) dialog.close();
    toast({ text });
    if (warning) toast({ text: warning });
    now();
  });
  document.addEventListener("htmx:before:swap", keepTyped);
  document.addEventListener("htmx:before:swap", () => {
    // Dragging the corner of a field sets a style, which htmx would copy to the new one against the page's policy.
    for (const one of dialog.querySelectorAll("[style]")) one.removeAttribute("style");
  });
  document.addEventListener("htmx:error", (event) => refused(
    event.target.closest?.("form.act"), "This could not be sent. What you typed is still here.",
  ));
  document.addEventListener("aof:toast", (event) => toast(event.detail));
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-close]")) dialog.close();
    const choice = event.target.closest("[data-suggest]");
    if (choice) document.getElementById(choice.dataset.suggest).value = choice.textContent;
    if (event.target.closest("[data-help]")) document.getElementById("help").showModal();
    if (event.target === dialog && !dialog.querySelector("form[data-dirty]")) dialog.close();
  });
  dialog.addEventListener("close", () => {
    if (!dialog.open) dialog.replaceChildren();
    document.dispatchEvent(new CustomEvent("aof:closed", { detail: { done: dialog.dataset.done === "yes" } }));
    delete dialog.dataset.done;
  });
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form");
    if (form && form.method === "post") form.dataset.dirty = "";
  });
}

// A refusal that does not bring the form back must not take its place: what was typed would be lost.
function keepTyped(event) {
  const { sourceElement, response, text } = event.detail.ctx;
  const form = sourceElement?.closest?.("form.act, form[data-inline]:not([data-dirty])");
  if (!form || !(response?.status >= 400)) return;
  const page = new DOMParser().parseFromString(text, "text/html");
  const inline = form.dataset.inline !== undefined; // nothing was typed, and the next refresh draws it anew
  if (!inline && page.querySelector("form.act")) return;
  event.preventDefault();
  if (inline) now();
  refused(inline ? null : form, page.querySelector(".problem")?.textContent.trim().replace(/\s+/g, " ") ?? "This was refused.");
}

// Nothing outside of an open dialog can be read, so it is told there.
function refused(form, text) {
  if (!form) return toast({ text, bad: true });
  form.querySelector(".problem")?.remove();
  const note = document.createElement("div");
  note.className = "problem";
  note.setAttribute("role", "alert");
  note.textContent = text;
  form.querySelector("h2").after(note);
  note.scrollIntoView({ block: "nearest" });
}

export function toast({ text, link, stays = false, bad = false }) {
  const note = document.createElement("div");
  note.className = bad ? "toast bad" : "toast";
  note.append(text);
  if (link) {
    const go = document.createElement("a");
    [go.href, go.textContent] = link;
    note.append(" ", go);
  }
  const close = document.createElement("button");
  close.type = "button";
  close.className = "quiet";
  close.textContent = "Dismiss";
  close.addEventListener("click", () => note.remove());
  note.append(" ", close);
  toasts.append(note);
  if (!stays) setTimeout(() => note.remove(), bad ? 15000 : 6000);
}
