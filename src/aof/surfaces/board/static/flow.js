// The charts of the flow: areas of statuses on top of each other, and what was created and done.

let drawn = "", charts = [];
const COLOURS = {
  done: "--good", cancelled: "--grey", deadletter: "--bad", review: "--warn", "in-progress": "--violet", blocked: "--orange", ready: "--info", backlog: "--slate",
};

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function axes() {
  const common = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
  return [
    { ...common, values: (_, marks) => marks.map((mark) => new Date(mark * 1000).toISOString().slice(5, 10)) },
    { ...common, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000] },
  ];
}

function sized(place) {
  return { width: Math.max(place.clientWidth, 200), height: 230 };
}

function options(place, series) {
  const day = { value: (_, mark) => (mark === null ? "–" : new Date(mark * 1000).toISOString().slice(0, 10)), label: "day" };
  const hooks = { ready: [told], setCursor: [told] };
  return { ...sized(place), hooks, series: [day, ...series], axes: axes(), scales: { x: { time: true }, y: { range: (_, low, high) => [0, Math.max(high, 1)] } }, cursor: { drag: { x: false, y: false } }, tzDate: (mark) => uPlot.tzDate(new Date(mark * 1000), "Etc/UTC") };
}

// Where the pointer is on no day, the legend tells of the last one.
function told(chart) {
  const last = chart.data[0].length - 1;
  if (last >= 0 && chart.cursor.idx == null) chart.setLegend({ idx: last }, false);
}

function stacked(data) {
  const sums = data.days.map(() => 0);
  return data.counts.map((row) => row.map((count, place) => (sums[place] += count)));
}

function cumulative(place, data, days) {
  const sums = stacked(data);
  const series = data.statuses.map((status, row) => ({
    label: data.words[row], stroke: colour(COLOURS[status]), fill: colour(COLOURS[status]), width: 1, points: { show: data.days.length < 2 },
    value: (_, __, ___, at) => (at === null || at === undefined ? "–" : data.counts[row][at]),
  })).reverse();
  return new uPlot(options(place, series), [days, ...sums.reverse()], place);
}

function throughput(place, data, days) {
  const points = { show: true, size: 5 }, value = (_, count) => count ?? "–";
  const series = [
    { label: "created", stroke: colour("--info"), width: 2, points, value },
    { label: "done", stroke: colour("--good"), width: 2, points, value, dash: [6, 3] },
  ];
  return new uPlot(options(place, series), [days, data.created, data.done], place);
}

function draw(again = false) {
  const source = document.getElementById("flow-data");
  if (!source || typeof uPlot === "undefined") return;
  const places = ["cumulative", "throughput"].map((name) => document.getElementById(name));
  const theme = document.documentElement.dataset.theme ?? "auto";
  if (!again && drawn === theme + source.textContent && places.every((place) => place.firstChild)) return;
  drawn = theme + source.textContent;
  for (const chart of charts) chart.destroy();
  const data = JSON.parse(source.textContent), days = data.days.map((day) => Date.parse(`${day}T00:00:00Z`) / 1000);
  charts = [cumulative(places[0], data, days), throughput(places[1], data, days)];
}

for (const name of ["aof:refreshed", "htmx:after:swap"]) document.addEventListener(name, () => draw());
window.addEventListener("resize", () => {
  for (const chart of charts) chart.setSize(sized(chart.root.parentElement));
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(true));
new MutationObserver(() => draw(true)).observe(document.documentElement, { attributeFilter: ["data-theme"] });
draw();
