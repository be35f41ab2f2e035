const neighboursOf = (i) => {
  const found = [];
  for (let e = data.near.ptr[i]; e < data.near.ptr[i + 1]; e++)
    found.push({ node: data.near.node[e], shares: data.near.shares.map((part) => part[e] / 1000) });
  return found;
};

function nodeButton(i, label) {
  if (i >= data.sampled) return nameOf(label ?? nodes.id[i]);
  return el("button", { type: "button", class: "node", onclick: () => showNode(i) }, nameOf(label ?? nodes.id[i]));
}

function drawDrawer() {
  const i = current;
  const near = neighboursOf(i);
  const [own, ...others] = near;
  const title = el("h2", { id: "node-title", tabindex: "-1" }, "Node ", nameOf(nodes.id[i]));
  const buttons = el("span", {},
    seen.length ? el("button", { type: "button", class: "quiet", id: "node-back", onclick: () => showNode(seen.pop(), { back: true }) }, "Back") : null,
    " ", el("button", { type: "button", class: "quiet", id: "node-close", onclick: closeNode, "aria-label": "Close the node" }, "Close"));
  const facts = el("dl", { class: "facts" });
  const fact = (what, value) => facts.append(el("dt", {}, what), el("dd", {}, nameOf(value)));
  fact("true", labelText(nodes.true[i]));
  fact("predicted", labelText(nodes.predicted[i]));
  if (data.task !== "regression") fact("confidence", confidenceText(i));
  fact("outcome", outcomeText(i));
  fact("split", splitText(i));
  fact("neighbours", data.near.degree[i].toLocaleString("en"));
  const parts = [
    el("div", { class: "bar" }, title, buttons),
    facts,
    el("h3", {}, "Neighbourhood"),
    layerButtons(),
    picture(i, own, others),
    note(i, others),
    neighbourTable(i, own, others),
    el("p", { class: "help" }, data.explain ? "What each neighbour and column contributes to the prediction: " : null,
      data.explain ? el("code", {}, `${data.explain} ${shellWord(nodes.id[i])}`) : null)];
  drawer.replaceChildren(...parts.filter((part) => part !== null));
}

function layerButtons() {
  if (data.near.layers.length < 2) return null;
  const choose = (place) => { layer = place; drawDrawer(); byId(`layer-${place}`).focus(); };
  return el("p", { class: "layers", role: "group", "aria-label": "Layer that the picture shows" },
    ...data.near.layers.map((name, place) =>
      el("button", { type: "button", class: "quiet", id: `layer-${place}`, "aria-pressed": String(place === layer), onclick: () => choose(place) }, name)));
}

// A name in at most so many characters; those of Chinese and the like count twice.
const charWidth = (char) => (char.codePointAt(0) > 0x2e7f ? 2 : 1);
const nameWidth = (text) => [...text].reduce((sum, char) => sum + charWidth(char), 0);
function shortName(text, room) {
  if (nameWidth(text) <= room) return text;
  let [short, left] = ["", room - 1];
  for (const char of text) {
    left -= charWidth(char);
    if (left < 0) break;
    short += char;
  }
  return `${short}…`;
}

// The node in the middle, its neighbours around it; the wider the line, the more of the grid it fills.
function picture(i, own, others) {
  const size = 360, middle = size / 2;
  const layers = data.near.layers;
  const what = layers.length ? ` Line width: share of all places in ${layers[layer]}'s grid.` : "";
  // Names get room at the sides if they are long; many neighbours leave little between them.
  const room = others.length > 12 ? 9 : 18;
  const longest = Math.max(0, ...others.map((one) => nameWidth(shortName(nodes.id[one.node], room))));
  const radius = longest > 9 ? 90 : 118;
  const side = Math.max(0, 6.8 * longest + radius - 168);
  const svg = el("svg", { viewBox: `${-side} ${middle - radius - 32} ${size + 2 * side} ${2 * radius + 64}`, role: "group", "aria-label": `Node ${nodes.id[i]} and ${countOf(others.length, "neighbour")}.${what}`, id: "picture" });
  const most = Math.max(0.001, ...others.map((one) => one.shares[layer] ?? 0));
  others.forEach((one, place) => {
    const angle = (2 * Math.PI * place) / others.length - Math.PI / 2;
    const ring = others.length > 12 && place % 2 ? radius - 30 : radius;
    const [x, y] = [middle + ring * Math.cos(angle), middle + ring * Math.sin(angle)];
    const share = one.shares[layer];
    const selected = share === undefined || share > 0;
    svg.append(el("line", {
      x1: middle, y1: middle, x2: x, y2: y, stroke: selected ? "var(--soft)" : "var(--line)",
      "stroke-width": share ? 1 + (7 * share) / most : 1, "stroke-dasharray": selected ? null : "3 4",
    }));
    svg.append(dot(one.node, x, y, 8, share === undefined ? null : share));
    const turn = Math.cos(angle);
    const text = nodes.id[one.node];
    svg.append(el("text", {
      x: x + 12 * turn, y: y + 4 + 13 * Math.sin(angle), "aria-hidden": "true",
      "text-anchor": Math.abs(turn) < 0.3 ? "middle" : turn > 0 ? "start" : "end",
    }, shortName(text, room), el("title", {}, text)));
  });
  svg.append(dot(i, middle, middle, 14, own.shares[layer] ?? null, true));
  return svg;
}

function dot(i, x, y, r, share, isCentre = false) {
  const reachable = i < data.sampled && !isCentre;
  const label = `${nodes.id[i]}: predicted ${labelText(nodes.predicted[i])}, true ${labelText(nodes.true[i])}${share === null ? "" : `, fills ${percent(share)} of all places`}`;
  const open = () => showNode(i);
  const fill = data.task === "regression" ? "var(--c0)" : `var(${classColour(nodes.predicted[i])})`;
  return el("g", reachable ? { tabindex: "0", role: "button", "aria-label": label, onclick: open, onkeydown: (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); open(); } } } : { role: "img", "aria-label": label },
    el("circle", { cx: x, cy: y, r, fill, stroke: isRight(i) === false ? "var(--ink)" : "var(--paper)", "stroke-width": isRight(i) === false ? 3 : 2 }),
    el("title", {}, label));
}

function note(i, others) {
  const texts = [];
  const all = data.near.degree[i];
  if (!all) texts.push("The node has no neighbours: its prediction comes from its own features.");
  if (others.length < all) texts.push(`${others.length} of ${all.toLocaleString("en")} neighbours are shown, those that the layers select most.`);
  if (data.selection) texts.push(data.selection);
  else if (all) texts.push("An LGCL fills a grid: per feature, the largest values among the neighbours. The percentage is how many of all places of this grid a neighbour fills; zeros fill the rest. Dashed: not selected.");
  if (data.task !== "regression") texts.push("Colour: prediction. Ring: the prediction is wrong.");
  return el("p", { class: "help" }, texts.join(" "));
}

function neighbourTable(i, own, others) {
  const share = (value) => el("td", { class: "number" }, percent(value));
  const row = (one, isSelf) => el("tr", {},
    el("th", { scope: "row" }, isSelf ? "the node itself" : nodeButton(one.node)),
    el("td", {}, nameOf(labelText(nodes.true[one.node]))),
    el("td", {}, nameOf(labelText(nodes.predicted[one.node]))),
    ...one.shares.map(share));
  const empty = data.near.empty.map((part) => part[i] / 1000);
  const nobody = el("tr", {}, el("th", { scope: "row" }, "zeros"), el("td", {}, "-"), el("td", {}, "-"), ...empty.map(share));
  const heads = ["neighbour", "true", "predicted", ...data.near.layers];
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Neighbours as a table" },
    el("table", { id: "neighbours" }, el("caption", { class: "hidden" }, "Neighbours and the share of all places in each layer's grid that they fill"),
      el("thead", {}, el("tr", {}, ...heads.map((head, place) => el("th", { scope: "col", class: place > 2 ? "number" : null }, head)))),
      el("tbody", {}, ...(own.shares.some((value) => value > 0) ? [row(own, true)] : []), ...others.map((one) => row(one, false)), ...(empty.some((value) => value > 0) ? [nobody] : []))));
}
