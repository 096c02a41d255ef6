// Dragging between columns. The server says where a task may go; a move shows at once, is marked as pending, and goes
// back when it is refused. Nothing is approved by a drag.
import { hold, now } from "./live.js";
import { toast } from "./dialogs.js";
import { ask } from "./session.js";

const ready = new WeakSet();
let drag = null;

export function start() {
  attach();
  document.addEventListener("aof:refreshed", attach);
  document.addEventListener("aof:closed", (event) => {
    if (drag?.waiting && !event.detail.done) back(drag);
    if (drag?.waiting) finish(drag);
  });
}

function attach() {
  if (!window.Sortable || matchMedia("(max-width: 640px)").matches) return;
  for (const list of document.querySelectorAll("[data-column]")) {
    if (ready.has(list)) continue;
    ready.add(list);
    Sortable.create(list, {
      group: "board",
      sort: false,
      draggable: ".card",
      animation: matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 120,
      forceFallback: true,
      fallbackTolerance: 5,
      delay: 200,
      delayOnTouchOnly: true,
      filter: "input, .move, .pick",
      preventOnFilter: false,
      onChoose: ({ item }) => choose(item),
      onUnchoose: () => setTimeout(() => drag && !drag.waiting && finish(drag)),
      onMove: ({ from, to }) => from === to || Boolean(drag?.moves?.[to.dataset.column]),
      onStart: () => document.body.classList.add("dragging"),
      onEnd: drop,
    });
  }
}

function choose(item) {
  if (drag) return;
  const own = { item, from: item.parentElement, next: item.nextElementSibling, release: hold(), moves: null };
  drag = own;
  ask(`/board/tasks/${encodeURIComponent(item.dataset.task)}/moves`)
    .then((answer) => (answer.ok ? answer.json() : null))
    .then((told) => {
      own.moves = told?.moves ?? {};
      own.rev = told?.rev;
      for (const list of document.querySelectorAll("[data-column]")) {
        list.classList.toggle("may", drag === own && list.dataset.column in own.moves);
      }
    })
    .catch(() => {});
}

function drop({ item, to, from, originalEvent }) {
  document.body.classList.remove("dragging");
  const own = drag;
  if (!own || to === from) return own && finish(own);
  if (!isOver(to, originalEvent)) {
    back(own);
    return finish(own);
  }
  const move = own.moves?.[to.dataset.column];
  own.waiting = true;
  item.classList.add("pending");
  item.setAttribute("aria-busy", "true");
  const where = `/board/tasks/${encodeURIComponent(item.dataset.task)}/do/${move.action}`;
  if (move.direct) return send(own, where);
  return htmx.ajax("GET", where, { target: "#dialog" }).catch(() => { back(own); finish(own); });
}

// A card stays in the last column that took it; let go over another one, it must not be moved there.
function isOver(list, event) {
  const { clientX, clientY } = event?.changedTouches?.[0] ?? event ?? {};
  if (clientX === undefined) return false;
  return document.elementFromPoint(clientX, clientY)?.closest(".column")?.contains(list) ?? false;
}

async function send(own, where) {
  let refused = "the server does not answer";
  try {
    const answer = await ask(where, {
      method: "POST",
      headers: { "HX-Request": "true", "HX-Target": "dialog#dialog" },
      body: new URLSearchParams({ rev: own.rev, key: crypto.randomUUID().replaceAll("-", "") }),
    });
    if (answer.ok) {
      finish(own);
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    refused = page.querySelector(".problem")?.textContent.trim().replace(/\s+/g, " ") ?? refused;
  } catch { /* told below */ }
  back(own);
  finish(own);
  toast({ text: `Not moved: ${refused}`, bad: true });
}

function back(own) {
  own.from.insertBefore(own.item, own.next?.parentElement === own.from ? own.next : null);
}

function finish(own) {
  if (drag !== own) return;
  drag = null;
  own.item.classList.remove("pending");
  own.item.removeAttribute("aria-busy");
  for (const list of document.querySelectorAll(".may")) list.classList.remove("may");
  own.release();
  now();
}
