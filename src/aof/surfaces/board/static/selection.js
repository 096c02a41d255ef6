// Tasks that were picked for a bulk action. The server shows first what would become of them.

const picked = () => [...document.querySelectorAll("input[name=pick]:checked")];

export function start() {
  document.addEventListener("change", (event) => event.target.name === "pick" && show());
  document.addEventListener("aof:refreshed", show);
  document.addEventListener("aof:closed", (event) => event.detail.done && clear());
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-bulk]");
    if (!button) return;
    if (!button.dataset.bulk) return clear();
    const ids = new URLSearchParams(picked().map((one) => ["id", one.value]));
    htmx.ajax("GET", `/board/bulk/${button.dataset.bulk}?${ids}`, { target: "#dialog" });
  });
}

function clear() {
  for (const one of picked()) one.checked = false;
  show();
}

function show() {
  const bar = document.getElementById("bulk");
  if (!bar) return;
  const count = picked().length;
  bar.hidden = !count;
  bar.querySelector(".chosen").textContent = `${count} selected`;
}
