// Draws boxes and arrows: the data stands in the page, dagre lays it out. All text is set as text.

const SVG = "http://www.w3.org/2000/svg";
const WIDE = 190, HIGH = 44, PAD = 9;
const SMALLEST = 0.8; // below this nobody can read it
const NARROW = 640; // a place that is narrower than this is gone through from top to bottom
const pen = document.createElement("canvas").getContext("2d");
let drawn = "", scale = 0; // 0: as fits

function made(name, attributes = {}, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// As much of a text as a box has room for; letters are as wide as the font that draws them makes them.
function cut(text, font) {
  pen.font = font;
  const fits = (said) => pen.measureText(said).width <= WIDE - 2 * PAD;
  if (fits(text)) return text;
  const letters = [...text];
  while (letters.length && !fits(`${letters.join("")}…`)) letters.pop();
  return `${letters.join("").trimEnd()}…`;
}

function laidOut(data, down) {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: down ? "TB" : "LR", nodesep: 14, ranksep: down ? 34 : 46, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of data.nodes) graph.setNode(node.id, { width: WIDE, height: HIGH });
  for (const edge of data.edges) graph.setEdge(edge.from, edge.to, {}, edge.kind);
  dagre.layout(graph);
  return graph;
}

function arrow() {
  const marker = made("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" });
  marker.append(made("path", { d: "M0 0 L8 4 L0 8 z" }));
  const definitions = made("defs");
  definitions.append(marker);
  return definitions;
}

// From the middle of a box's far side to the middle of another one's near one, by way of the bends between.
function line(from, to, bends, down) {
  const straight = down ? to.y > from.y : to.x > from.x;
  const ends = down
    ? [{ x: from.x, y: from.y + HIGH / 2 }, { x: to.x, y: to.y - HIGH / 2 }]
    : [{ x: from.x + WIDE / 2, y: from.y }, { x: to.x - WIDE / 2, y: to.y }];
  const points = straight ? [ends[0], ...bends.slice(1, -1), ends[1]] : bends;
  return points.map((point, place) => `${place ? "L" : "M"}${point.x.toFixed(1)} ${point.y.toFixed(1)}`).join(" ");
}

function box(node, place) {
  const link = made("a", { href: node.link, class: `s-${node.status}${node.marked ? " marked" : ""}`, "data-node": node.id });
  const x = place.x - WIDE / 2, y = place.y - HIGH / 2, { fontFamily } = getComputedStyle(document.body);
  link.append(made("title", {}, node.lines.join(" · ")), made("rect", { x, y, width: WIDE, height: HIGH, rx: 6 }));
  node.lines.forEach((text, row) => {
    const said = cut(text, `${row ? "400 11px" : "600 12px"} ${fontFamily}`);
    link.append(made("text", { x: x + PAD, y: y + 18 + row * 16, class: row ? "second" : "first" }, said));
  });
  return link;
}

function draw() {
  const place = document.getElementById("drawing"), source = document.getElementById("drawing-data");
  if (!place || !source || typeof dagre === "undefined") return;
  const down = place.clientWidth < NARROW, wanted = `${down} ${source.textContent}`;
  if (wanted === drawn && place.firstChild) return;
  drawn = wanted;
  const data = JSON.parse(source.textContent), graph = laidOut(data, down), size = graph.graph();
  const width = Math.ceil(size.width ?? 0), height = Math.ceil(size.height ?? 0);
  const svg = made("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group" });
  svg.append(arrow());
  for (const edge of graph.edges()) {
    const kind = edge.name === "blocks" ? "" : "dashed";
    svg.append(made("path", { d: line(graph.node(edge.v), graph.node(edge.w), graph.edge(edge).points, down), class: kind, "marker-end": "url(#arrow)" }));
  }
  for (const node of data.nodes) svg.append(box(node, graph.node(node.id)));
  const { scrollLeft, scrollTop } = place, held = document.activeElement?.getAttribute?.("data-node");
  place.replaceChildren(svg);
  resize(place);
  place.scrollTo(scrollLeft, scrollTop);
  if (held) [...place.querySelectorAll("[data-node]")].find((one) => one.getAttribute("data-node") === held)?.focus();
}

// As large as somebody wants it, else as small as it takes to see its whole width.
function resize(place) {
  const svg = place.querySelector("svg");
  if (!svg) return;
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const by = scale || Math.max(Math.min(place.clientWidth / width, 1), SMALLEST);
  svg.setAttribute("width", Math.round(width * by));
  svg.setAttribute("height", Math.round(height * by));
  return by;
}

function zoom(by) {
  const place = document.getElementById("drawing");
  if (!place) return;
  const x = (place.scrollLeft + place.clientWidth / 2) / place.scrollWidth, y = (place.scrollTop + place.clientHeight / 2) / place.scrollHeight;
  scale = by ? Math.min(Math.max((scale || resize(place)) * by, SMALLEST / 2), 3) : 0;
  resize(place);
  place.scrollTo(x * place.scrollWidth - place.clientWidth / 2, y * place.scrollHeight - place.clientHeight / 2);
}

// The hop of a link in the drawing is a row of the table: open it.
function reveal() {
  const row = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const details = row && row.closest("details");
  if (details && !details.open) {
    details.open = true;
    row.scrollIntoView({ block: "nearest" });
  }
}

for (const name of ["aof:refreshed", "htmx:after:swap"]) document.addEventListener(name, draw);
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-zoom]");
  if (button) zoom(Number(button.dataset.zoom));
});
window.addEventListener("resize", () => {
  draw();
  if (!scale) resize(document.getElementById("drawing") ?? document.body);
});
window.addEventListener("hashchange", reveal);
draw();
reveal();
