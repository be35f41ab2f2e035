document.addEventListener("keydown", (event) => { if (event.key === "Escape" && drawer.open) closeNode(); });
for (const button of document.querySelectorAll("button.node[data-node]"))
  button.addEventListener("click", () => showNode(Number(button.dataset.node)));

// Search: ids that are equal come first, then those that start with the text, then those that hold it.
function found(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const ranks = [[], [], []];
  for (let i = 0; i < data.sampled; i++) {
    const id = nodes.id[i].toLowerCase();
    const place = id === wanted ? 0 : id.startsWith(wanted) ? 1 : id.includes(wanted) ? 2 : -1;
    if (place >= 0) ranks[place].push(i);
  }
  return ranks.flat();
}
function showResults() {
  const text = byId("search").value;
  const all = found(text);
  const open = (i) => { byId("results").replaceChildren(); showNode(i); };
  byId("results").replaceChildren(...all.slice(0, 8).map((i) =>
    el("li", {}, el("button", { type: "button", class: "node", onclick: () => open(i) }, nameOf(nodes.id[i])))));
  const sample = data.sampled < data.total ? " in the sample" : "";
  byId("found").textContent = text.trim() ? `${countOf(all.length, "{{unit}}")} found${sample}` : "";
}
byId("search").addEventListener("input", showResults);
byId("search-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const [first] = found(byId("search").value);
  if (first !== undefined) { byId("results").replaceChildren(); showNode(first); } else showResults();
});
