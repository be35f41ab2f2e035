// The {{unit}}s of a report: their labels as text and colour, and the drawer that shows one of them.
const nodes = data.nodes;
const SPLITS = ["training", "validation", "test"];
const countOf = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
const percent = (value) => `${(100 * value).toFixed(1)} %`;
const plain = (value) => (value === null ? "unknown" : String(Number(value.toPrecision(5))));

// A true or predicted label as text: a class, several labels, or a number.
function labelText(value) {
  if (value === null || value === -1) return "unknown";
  if (data.task === "regression") return plain(value);
  if (Array.isArray(value)) {
    const names = value.slice(0, data.labelsShown).map((place) => data.classes[place]);
    return names.length ? names.join(", ") + (value.length > names.length ? ", …" : "") : "no label";
  }
  return data.classes[value];
}
const splitText = (i) => (nodes.split[i] < 0 ? "none" : SPLITS[nodes.split[i]]);
const confidenceText = (i) => (nodes.confidence[i] === null ? "-" : percent(nodes.confidence[i]));

// Whether a node is right: true, false, or null if the truth is not known. A number is never right.
function isRight(i) {
  if (data.task === "regression" || nodes.wrong[i] === null) return null;
  return nodes.wrong[i] === 0;
}
function outcomeText(i) {
  if (nodes.wrong[i] === null) return "truth unknown";
  if (data.task === "regression") return `${nodes.wrong[i] > 0 ? "+" : ""}${plain(nodes.wrong[i])} off`;
  if (data.task === "multilabel") return nodes.wrong[i] === 0 ? "all labels right" : `${countOf(nodes.wrong[i], "label")} wrong`;
  return nodes.wrong[i] === 0 ? "right" : "wrong";
}

// The colour of a class: classes beyond the palette share the last colour.
const PALETTE = 8;
function classColour(value) {
  const place = Array.isArray(value) ? (value.length ? value[0] : -1) : value;
  if (data.task === "regression" || place === null || place < 0) return "--line";
  const rank = data.ranks[place];
  return `--c${rank < PALETTE - 1 ? rank : PALETTE - 1}`;
}

// An id as a shell takes it.
const shellWord = (text) => (/^[\w.,:@%+/][\w.,:@%+/-]*$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

const drawer = byId("node");
const seen = []; // the nodes shown before this one
let current = null;
let layer = 0;
let opener = null;
const onNode = []; // called with the number of the node that is shown, or null

function showNode(i, { back = false } = {}) {
  if (i === undefined || i < 0 || i >= data.sampled) return;
  if (!drawer.open) opener = document.activeElement;
  else if (!back && current !== null && current !== i) seen.push(current);
  current = i;
  drawDrawer();
  if (!drawer.open) drawer.show();
  drawer.scrollTop = 0;
  byId("node-title").focus();
  onNode.forEach((tell) => tell(i));
}
function closeNode() {
  drawer.close();
  seen.length = 0;
  current = null;
  onNode.forEach((tell) => tell(null));
  (opener && opener.isConnected ? opener : byId("map-canvas"))?.focus();
}
