// The slider of a task's history: the task as it was at any event.
import { ask } from "./session.js";

let timer = 0;

export function start() {
  document.addEventListener("input", (event) => event.target.id === "history-at" && show(event.target));
  document.addEventListener("aof:refreshed", grow);
}

function seqs() {
  return (document.getElementById("slider")?.dataset.seqs ?? "").split(" ").filter(Boolean);
}

function grow() {
  const range = document.getElementById("history-at");
  if (!range) return;
  const last = seqs().length - 1, atEnd = range.value === range.max;
  range.max = Math.max(last, 0);
  if (atEnd) {
    range.value = range.max;
    document.getElementById("history-seq").textContent = seqs()[last] ?? "";
  }
}

function show(range) {
  const seq = seqs()[Number(range.value)];
  if (seq === undefined) return;
  document.getElementById("history-seq").textContent = seq;
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const task = document.getElementById("slider").dataset.history;
    const answer = await ask(`/board/tasks/${encodeURIComponent(task)}/at/${seq}`, { headers: { "AOF-Part": "dialog" } });
    const text = await answer.text();
    const target = document.getElementById("history-past");
    await htmx.swap({ text, sourceElement: target, target: "#history-past", swap: "innerHTML", hx: {} });
  }, 80);
}
