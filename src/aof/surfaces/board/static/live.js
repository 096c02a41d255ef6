// Keeps the page as the server would draw it now. One request at a time, however many events come; nothing that somebody
// types, selects, drags or scrolls is touched, because only what differs is changed.
import { anchor } from "./anchors.js";
import { ask, half } from "./session.js";
import { Stream } from "./stream.js";

const PAUSE = 100; // milliseconds from one refresh to the next
const view = () => document.getElementById("view");
let seen = Number(view().dataset.head);
let dirty = false, busy = false, holds = 0;

const SAID = {
  connecting: "connecting",
  live: "live",
  offline: "not connected, trying again",
  "signed-out": "signed out",
};

export function start() {
  const connect = () => (window.SharedWorker ? shared() : own());
  connect();
  document.addEventListener("visibilitychange", () => refresh());
}

function shared() {
  const worker = new SharedWorker("/board/static/live-worker.js", { type: "module", name: "aof" });
  const hello = () => worker.port.postMessage({ type: "hello", head: seen, half: half() });
  worker.port.onmessage = ({ data }) => told(data);
  hello();
  addEventListener("pagehide", () => worker.port.postMessage({ type: "bye" }));
  addEventListener("pageshow", (event) => event.persisted && hello());
}

function own() {
  const stream = new Stream(told);
  stream.open(seen, half());
  addEventListener("pagehide", () => stream.close());
  addEventListener("pageshow", (event) => event.persisted && stream.open(seen, half()));
}

function told(message) {
  if (message.type === "state") return show(message.state);
  const task = view().dataset.liveTask;
  const ours = !message.tasks || !task || message.tasks.includes(task);
  if (message.head === seen) return;
  if (!("live" in view().dataset) || !ours) return;
  dirty = true;
  refresh();
}

function show(state) {
  const line = document.getElementById("connection");
  if (!line || line.dataset.state === state) return;
  const before = line.dataset.state;
  line.dataset.state = state;
  line.querySelector(".said").textContent = SAID[state];
  if (state === "signed-out") signedOut();
  if (state === "live" && before === "offline") now();
}

function signedOut() {
  document.body.classList.add("signed-out");
  document.dispatchEvent(new CustomEvent("aof:toast", { detail: {
    text: "You are signed out: your token or session is over. What you typed stays here.",
    link: ["/board/login?next=" + encodeURIComponent(location.pathname + location.search), "Sign in"],
    stays: true,
  } }));
}

// While something is dragged, nothing moves under it.
export function hold() {
  holds += 1;
  return () => {
    holds -= 1;
    refresh();
  };
}

// Draw again whatever happened.
export function now() {
  dirty = true;
  return refresh();
}

async function refresh() {
  if (busy) return;
  busy = true;
  try {
    while (dirty && !holds && !document.hidden) {
      dirty = false;
      const began = performance.now();
      await draw();
      const rest = PAUSE - (performance.now() - began);
      if (rest > 0) await new Promise((done) => setTimeout(done, rest));
    }
  } finally {
    busy = false;
  }
}

async function draw() {
  const where = location.pathname + location.search;
  let answer;
  try {
    answer = await ask(where, { headers: { "AOF-Part": "view" } });
  } catch {
    return; // the stream says when the server is there again
  }
  if (answer.status === 401) return show("signed-out");
  const text = await answer.text();
  if (holds || where !== location.pathname + location.search) {
    dirty = true;
    return;
  }
  const stay = anchor(view());
  await htmx.swap({ text, sourceElement: view(), target: "#view", swap: "outerMorph", hx: {} });
  stay();
  seen = Number(view().dataset.head) || seen;
  document.dispatchEvent(new CustomEvent("aof:refreshed"));
}
