// Keeps the page's half of the session where only this host and port can read it, and goes on to the board.
(() => {
  const onward = document.getElementById("onward");
  localStorage.setItem(onward.dataset.session, onward.dataset.half);
  location.replace(onward.href);
})();
