import { bar, make, number, table } from "./parts.js";

const at = (id) => document.getElementById(id);
const SHOWN = 20; // classes in a table
const LARGEST = 10; // contributions in a table
let token = "";
let model = null;

async function ask(path, body) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const options = { headers };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    headers["Content-Type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The service does not answer. Is it still running?");
  }
  if (response.status === 204) return null;
  const found = await response.json().catch(() => ({}));
  if (!response.ok) {
    const error = new Error(found.error || `The service answered with status ${response.status}.`);
    error.status = response.status;
    error.field = found.field;
    throw error;
  }
  return found;
}

function command(path, body) {
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const parts = ["curl", quoted(new URL(path, location.href).href)];
  if (token) parts.push("-H", '"Authorization: Bearer $LGCN_TOKEN"');
  if (body !== undefined) parts.push("-H", "'Content-Type: application/json'", "-d", quoted(JSON.stringify(body)));
  at("curl").textContent = parts.join(" ");
}

async function show(form, path, body, render) {
  form.closest("section").after(at("result"));
  const buttons = document.querySelectorAll("button");
  buttons.forEach((one) => (one.disabled = true));
  at("result").hidden = false;
  at("answer").replaceChildren(make("p", "Computing …"));
  command(path, body);
  try {
    const found = await ask(path, body);
    at("answer").replaceChildren(...render(found));
  } catch (error) {
    const place = error.field ? ` (${error.field})` : "";
    at("answer").replaceChildren(make("p", `${error.message}${place}`, { class: "problem" }));
  }
  buttons.forEach((one) => (one.disabled = false));
  at("result-title").focus({ preventScroll: true });
  at("result").scrollIntoView({ block: "nearest" });
}

function prediction(row) {
  const parts = [];
  const node = make("p", `Node ${row.node}`, { class: "hint" });
  const several = model.task === "multilabel";
  let value = row.predicted;
  if (several && value === "") value = "no label";
  parts.push(node, make("p", typeof value === "number" ? number(value) : value, { class: "predicted" }));
  if (row.lower !== undefined && row.lower !== null) {
    const level = model.interval ? ` (${number(100 * model.interval.level)} % of the values)` : "";
    parts.push(make("p", `between ${number(row.lower)} and ${number(row.upper)}${level}`));
  }
  if (row.confidence !== undefined) parts.push(make("p", `Confidence ${(100 * row.confidence).toFixed(1)} %`));
  if (row.true !== undefined && row.true !== null) parts.push(make("p", `True: ${number(row.true)}${row.split ? `, a ${row.split} node` : ""}`));
  if (row.probabilities) {
    const sorted = Object.entries(row.probabilities).sort((a, b) => b[1] - a[1]);
    const rows = sorted.slice(0, SHOWN).map(([name, share]) => [
      make("th", name, { scope: "row" }), bar(share), make("td", `${(100 * share).toFixed(1)} %`, { class: "number" }),
    ]);
    const more = sorted.length > SHOWN ? `, the first ${SHOWN} of ${sorted.length}` : "";
    parts.push(table(`Probabilities${more}`, [several ? "Label" : "Class", "", make("th", "Probability", { scope: "col", class: "number" })], rows));
  }
  return parts;
}

function predictions(found) {
  const parts = found.predictions.flatMap(prediction);
  for (const note of found.notes || []) parts.push(make("p", `Note: ${note}`, { class: "hint" }));
  return parts;
}

function explanation(found) {
  const parts = [make("p", `Node ${found.node}`, { class: "hint" })];
  parts.push(make("p", `${found.explained ?? found.predicted}`, { class: "predicted" }));
  parts.push(make("p", `Score ${number(found.score)}: the baseline ${number(found.baseline)} and the contributions below.`));
  if (found.picture) {
    const picture = make("img", null, { class: "picture", alt: `The neighbourhood of node ${found.node} and what each part contributes` });
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(found.picture)}`;
    parts.push(picture, make("a", "Save the picture", { href: picture.src, download: "explanation.svg" }));
  }
  for (const [name, title] of [["by_node", "What each node contributes"], ["by_column", "What each column contributes"]]) {
    const rows = contributions(found[name]);
    if (rows.length) parts.push(make("h3", title), table(`The largest first${rows.length >= LARGEST ? `, ${LARGEST} of them` : ""}`, [title.includes("node") ? "Node" : "Column", make("th", "Contribution", { scope: "col", class: "number" })], rows));
  }
  return parts;
}

function contributions(part) {
  const pairs = Array.isArray(part)
    ? part.map((one) => [one.node ?? one.column ?? one.name, one.contribution ?? one.value])
    : Object.entries(part || {});
  return pairs
    .filter((pair) => typeof pair[1] === "number")
    .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]))
    .slice(0, LARGEST)
    .map(([name, value]) => [make("th", name, { scope: "row" }), make("td", number(value), { class: "number" })]);
}

function cellField(column, place) {
  const cell = make("div", null, { class: "cell" });
  const label = make("label", `${column.name} `, { for: `cell-${place}` });
  label.append(make("span", column.kind, { class: "kind" }));
  const input = make("input", null, { id: `cell-${place}`, autocomplete: "off" });
  cell.append(label, input);
  if (column.categories) {
    const list = make("datalist", null, { id: `choices-${place}` });
    for (const one of column.categories) list.append(make("option", null, { value: one }));
    input.setAttribute("list", list.id);
    cell.append(list);
  }
  return cell;
}

function newNode() {
  const node = { id: at("new-id").value.trim() };
  const columns = model.new_nodes.columns;
  if (columns) {
    node.columns = {};
    columns.forEach((column, place) => {
      const text = at(`cell-${place}`).value.trim();
      // As text: only the service knows whether 1.014 of this column is about one or a thousand.
      if (text !== "") node.columns[column.name] = text;
    });
  } else if (model.new_nodes.features) {
    node.features = at("cell-0").value.trim().split(/[\s,;]+/).filter(Boolean).map(Number);
  }
  const edges = [];
  for (const line of at("neighbours").value.split("\n").map((one) => one.trim()).filter(Boolean)) {
    const found = model.graph.weighted ? line.match(/^(.*\S)\s*[,;\s]\s*([\d.eE+-]+)$/) : null;
    const edge = { source: found ? found[1] : line, target: node.id };
    if (found) edge.weight = Number(found[2]);
    edges.push(edge);
  }
  return { new_nodes: [node], edges };
}

function fill() {
  document.title = `${model.name} · lgcn service`;
  at("title").textContent = model.name;
  const what = { classification: `${model.classes.length} classes`, multilabel: `${model.classes.length} labels`, regression: "a number per node" };
  at("summary").textContent = `Predicts ${what[model.task]} on a graph of ${model.graph.nodes.toLocaleString("en")} nodes.`;
  at("work").hidden = false;
  at("examples").replaceChildren(...model.graph.examples.map((one) => make("option", null, { value: one })));
  at("node-hint").textContent = `For example ${model.graph.examples.slice(0, 3).join(", ")}.`;
  const columns = model.new_nodes.columns;
  at("new-form").hidden = !model.new_nodes.possible;
  at("new-refused").hidden = model.new_nodes.possible;
  at("new-refused").textContent = `New nodes cannot be predicted: ${model.new_nodes.reason}.`;
  let fields = (columns || []).map(cellField);
  if (!columns && model.new_nodes.features) fields = [cellField({ name: "features", kind: `${model.new_nodes.features} numbers` }, 0)];
  at("columns").append(...fields);
  at("columns").hidden = !fields.length;
  const weights = model.graph.weighted ? " Write the weight of the edge behind the id, such as “a 0.5”." : "";
  const direction = model.graph.directed ? " Edges lead from them to the new node." : "";
  at("neighbours-hint").textContent = `Empty cells are missing values.${direction}${weights}`;
  const facts = [
    ["Task", model.task], ["Classes", model.classes.slice(0, SHOWN).join(", ") || null],
    ["Score", model.scores.test === null ? null : `${model.scores.metric} ${number(model.scores.test)} on test nodes`],
    ["Columns", (columns || []).map((one) => `${one.name} (${one.kind})`).join(", ") || null],
    ["Version", `lgcn ${model.version}`],
  ];
  at("facts").replaceChildren(...facts.filter((pair) => pair[1]).flatMap(([name, value]) => [make("dt", name), make("dd", value)]));
}

async function start() {
  try {
    model = await ask("/model");
    at("token-form").hidden = true;
    fill();
    if (token) await ask("/session", {});
  } catch (error) {
    if (error.status === 401) {
      at("token-form").hidden = false;
      at("token-problem").hidden = !token;
      at("token-problem").textContent = token ? error.message : "";
      at("summary").textContent = "A token is needed.";
      at("token").focus();
    } else {
      at("summary").textContent = error.message;
    }
  }
  document.body.dataset.ready = "true";
}

at("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = at("token").value.trim();
  start();
});
at("known-form").addEventListener("submit", (event) => {
  event.preventDefault();
  show(event.target, "/predict", { nodes: [at("node").value.trim()] }, predictions);
});
at("explain").addEventListener("click", (event) => {
  if (at("node").reportValidity()) show(event.target, "/explain", { node: at("node").value.trim(), picture: true }, explanation);
});
at("new-form").addEventListener("submit", (event) => {
  event.preventDefault();
  show(event.target, "/predict", newNode(), predictions);
});
start();
