// The drawer of a report on whole graphs: what is known of a graph, and its picture.
const pictures = data.pictures;
const neighboursOf = () => []; // graphs have no edges between them

function drawDrawer() {
  const i = current;
  const title = el("h2", { id: "node-title", tabindex: "-1" }, "Graph ", nameOf(nodes.id[i]));
  const close = el("button", { type: "button", class: "quiet", id: "node-close", onclick: closeNode, "aria-label": "Close the graph" }, "Close");
  const facts = el("dl", { class: "facts" });
  const fact = (what, value) => facts.append(el("dt", {}, what), el("dd", {}, nameOf(value)));
  fact("true", labelText(nodes.true[i]));
  fact("predicted", labelText(nodes.predicted[i]));
  if (data.task !== "regression") fact("confidence", confidenceText(i));
  fact("outcome", outcomeText(i));
  fact("split", splitText(i));
  fact("nodes", pictures.size[i].toLocaleString("en"));
  fact("edges", pictures.edges[i].toLocaleString("en"));
  const drawn = pictures.ptr[i + 1] > pictures.ptr[i];
  const parts = [el("div", { class: "bar" }, title, el("span", {}, close)), facts, el("h3", {}, "Picture")];
  if (drawn) parts.push(picture(i), labelList(i));
  parts.push(el("p", { class: "help" }, noteOf(i, drawn)));
  drawer.replaceChildren(...parts.filter((part) => part !== null));
}

// The labels of nodes have the colours of classes: the most frequent ones differ, the rest share one.
function labelColour(label) {
  if (label === null) return "--c0";
  if (label < 0) return "--line";
  return `--c${Math.min(pictures.ranks[label], PALETTE - 1)}`;
}
const labelOf = (node) => (pictures.label === null ? null : pictures.label[node]);
const labelName = (label) => (label < 0 ? "no label" : pictures.column === null ? `label ${pictures.names[label]}` : pictures.names[label]);

// Coordinates are in hundredths of an edge. A large graph fills the picture, a small one does not.
function picture(i) {
  const [start, stop] = [pictures.ptr[i], pictures.ptr[i + 1]];
  const [x, y] = [pictures.x.slice(start, stop), pictures.y.slice(start, stop)];
  const span = (values) => Math.max(...values) - Math.min(...values);
  const width = 420, room = 12, highest = 520;
  const scale = Math.min(0.6, (width - 2 * room) / (span(x) || 1), (highest - 2 * room) / (span(y) || 1));
  const height = span(y) * scale + 2 * room;
  const left = (width - span(x) * scale) / 2;
  const at = (node) => [left + (x[node] - Math.min(...x)) * scale, height - room - (y[node] - Math.min(...y)) * scale];
  const radius = Math.max(2.5, Math.min(8, 26 * scale, 60 / Math.sqrt(stop - start)));
  const [from, to] = [pictures.edgePtr[i], pictures.edgePtr[i + 1]];
  const label = `Graph ${nodes.id[i]}: ${countOf(stop - start, "node")} and ${countOf(to - from, "edge")} are drawn`;
  const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, id: "picture" });
  for (let e = from; e < to; e++) {
    const [[x1, y1], [x2, y2]] = [at(pictures.ends[2 * e]), at(pictures.ends[2 * e + 1])];
    svg.append(el("line", { x1, y1, x2, y2, stroke: "var(--soft)", "stroke-width": Math.min(1.5, radius / 3) }));
  }
  for (let node = start; node < stop; node++) {
    const [cx, cy] = at(node - start);
    const known = labelOf(node);
    const text = `node ${pictures.node[node]}${known === null ? "" : `, ${labelName(known)}`}`;
    svg.append(el("circle", { cx, cy, r: radius, fill: `var(${labelColour(known)})`, stroke: "var(--ink)", "stroke-width": 0.75 }, el("title", {}, text)));
  }
  return svg;
}

// Which labels the drawn nodes have, and how many of them.
function labelList(i) {
  if (pictures.label === null) return null;
  const counts = new Map();
  for (let node = pictures.ptr[i]; node < pictures.ptr[i + 1]; node++)
    counts.set(pictures.label[node], (counts.get(pictures.label[node]) ?? 0) + 1);
  const rows = [...counts].sort((a, b) => b[1] - a[1]).map(([label, count]) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = `var(${labelColour(label)})`;
    return el("li", {}, swatch, nameOf(labelName(label)), ` (${count.toLocaleString("en")})`);
  });
  return el("ul", { class: "legend", id: "labels", "aria-label": "Labels of the drawn nodes" }, ...rows);
}

function noteOf(i, drawn) {
  if (!pictures.size[i]) return "The graph has no nodes.";
  if (!drawn) return "There is no picture of this graph: the page has room for a limited number of them, and those of the tables come first.";
  const texts = [];
  const count = pictures.ptr[i + 1] - pictures.ptr[i];
  if (count < pictures.size[i]) texts.push(`${count.toLocaleString("en")} of ${pictures.size[i].toLocaleString("en")} nodes are drawn: those nearest to the node with the most edges.`);
  if (pictures.label !== null) texts.push(pictures.column === null ? "Colour: the label of the node." : `Colour: the node's ${pictures.column}.`);
  texts.push("Nodes that are near in the graph are drawn near each other; the orientation has no meaning.");
  return texts.join(" ");
}
