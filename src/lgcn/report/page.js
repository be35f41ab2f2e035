// What all pages share: the data, small helpers, charts, tables that sort, and the theme.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

// An element. Text is set as text: nothing from data can become HTML.
function el(name, attributes = {}, ...children) {
  const svg = ["svg", "g", "line", "circle", "text", "title", "path"].includes(name);
  const found = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) found.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) found.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children) if (child !== null && child !== undefined) found.append(child);
  return found;
}
const nameOf = (text) => el("bdi", {}, text);

// The colour that a CSS variable has now, as the canvas takes it.
const probe = document.body.appendChild(el("span", { hidden: true }));
function colour(variable) {
  probe.style.color = `var(${variable})`;
  return getComputedStyle(probe).color;
}

// The charts. With ast, Vega interprets its expressions, so the page needs no eval.
async function drawCharts() {
  const options = { mode: "vega-lite", actions: false, renderer: "svg", ast: true };
  for (const [id, spec] of Object.entries(data.charts)) await vegaEmbed(byId(id), spec, options);
  document.documentElement.dataset.ready = "yes";
}

// Tables: a click on a head sorts by it, a second click the other way round.
function sortBy(table, column) {
  const heads = [...table.tHead.rows[0].cells];
  const number = heads[column].classList.contains("number");
  const before = heads[column].getAttribute("aria-sort");
  const rising = before ? before === "descending" : !number;
  const key = (row) => {
    const cell = row.cells[column];
    const text = cell.dataset.sort ?? cell.textContent;
    return number ? parseFloat(text) : text;
  };
  const order = (a, b) => (number ? key(a) - key(b) : key(a).localeCompare(key(b), undefined, { numeric: true }));
  const rows = [...table.tBodies[0].rows].sort((a, b) => (rising ? order(a, b) : order(b, a)));
  table.tBodies[0].append(...rows);
  heads.forEach((head) => head.removeAttribute("aria-sort"));
  heads[column].setAttribute("aria-sort", rising ? "ascending" : "descending");
}
for (const table of document.querySelectorAll("table.sortable"))
  [...table.tHead.rows[0].cells].forEach((head, column) =>
    head.querySelector("button")?.addEventListener("click", () => sortBy(table, column)));

// The theme: that of the system until the button is used.
const onTheme = [];
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (systemDark.matches ? "dark" : "light")) === "dark";
function showTheme() {
  byId("theme").textContent = isDark() ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
  onTheme.forEach((redraw) => redraw());
}
byId("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  showTheme();
});
systemDark.addEventListener("change", showTheme);
showTheme();
