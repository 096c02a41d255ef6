// Fills the empty page that a browser gets: what it goes to by itself is asked for again, with the page's half of the session.
import { ask, half } from "./session.js";

const where = location.pathname + location.search;
const answer = half() ? await ask(where) : null;
if (!answer || answer.status === 401) location.replace("/board/login?next=" + encodeURIComponent(where));
else show(new DOMParser().parseFromString(await answer.text(), "text/html"));

function show(page) {
  document.title = page.title;
  document.body.replaceWith(document.adoptNode(page.body));
  const known = new Set([...document.querySelectorAll("head [src], head [href]")].map(address));
  for (const one of page.head.querySelectorAll("meta[name=htmx-config], link, script")) {
    if (known.has(address(one))) continue;
    const fresh = document.createElement(one.localName); // a script that was parsed elsewhere would not run
    for (const { name, value } of one.attributes) fresh.setAttribute(name, value);
    if (fresh.localName === "script") fresh.async = false; // one after the other, in this order
    document.head.append(fresh);
  }
  document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  if (history.state?.top) scrollTo(0, history.state.top);
  addEventListener("pagehide", () => history.replaceState({ ...history.state, top: scrollY }, ""));
}

function address(element) {
  return element.getAttribute("src") ?? element.getAttribute("href");
}
