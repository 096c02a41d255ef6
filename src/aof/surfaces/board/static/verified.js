// The footer: how far the history is verified. A long one is verified piece by piece; a piece at a time, and seldom.
import { ask } from "./session.js";

const PAUSE = 2000;
let timer = 0, last = 0;

export function start() {
  document.addEventListener("aof:refreshed", () => later(PAUSE));
  later(0);
}

function later(wait) {
  if (timer) return;
  timer = setTimeout(look, Math.max(wait - (performance.now() - last), 0));
}

async function look() {
  timer = 0;
  if (document.hidden) return;
  last = performance.now();
  const line = document.getElementById("verified");
  try {
    const answer = await ask("/board/verified");
    if (answer.status === 401) return;
    line.classList.toggle("damaged", !answer.ok);
    if (!answer.ok) {
      line.textContent = "history could not be verified: run aof doctor";
      return;
    }
    const { verifiedTo, head } = await answer.json();
    line.textContent = `history verified to event ${verifiedTo}` + (verifiedTo < head ? ` of ${head}` : "");
    if (verifiedTo < head) later(0);
  } catch { /* the server is away; the connection line says so */ }
}
