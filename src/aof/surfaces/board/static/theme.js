// Light, dark or as the system says; read before the page is drawn, so that it does not flash.
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("aof-theme"); } catch { /* storage is switched off */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
