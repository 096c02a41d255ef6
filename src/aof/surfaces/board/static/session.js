// The page's half of the session. The cookie is the other one, which every port of this machine is sent.
export const half = () => localStorage.getItem(document.documentElement.dataset.session) ?? "";

export function ask(where, { headers, ...more } = {}) {
  return fetch(where, { cache: "no-store", credentials: "same-origin", headers: { ...headers, "AOF-Page": half() }, ...more });
}

export function start() {
  document.addEventListener("htmx:config:request", (event) => {
    event.detail.ctx.request.headers["AOF-Page"] = half();
  });
}
