// Parts that both pages share. Text only ever enters the page as text, never as markup.

export function make(tag, text, options = {}) {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = String(text);
  for (const [name, value] of Object.entries(options)) element.setAttribute(name, value);
  return element;
}

export function table(caption, header, rows) {
  const found = make("table");
  found.append(make("caption", caption, { class: "hint" }));
  const head = make("tr");
  for (const name of header) head.append(name instanceof Node ? name : make("th", name, { scope: "col" }));
  const top = make("thead");
  top.append(head);
  const body = make("tbody");
  for (const cells of rows) {
    const row = make("tr");
    for (const cell of cells) {
      if (cell instanceof Node) row.append(cell);
      else row.append(make("td", cell, typeof cell === "number" ? { class: "number" } : {}));
    }
    body.append(row);
  }
  found.append(top, body);
  return found;
}

export function bar(share) {
  const cell = make("td", null, { class: "bar" });
  const track = make("span", null, { class: "track", "aria-hidden": "true" });
  const part = make("span");
  part.style.width = `${100 * Math.max(0, Math.min(1, share))}%`;
  track.append(part);
  cell.append(track);
  return cell;
}

export function number(value) {
  if (typeof value !== "number") return value === null || value === undefined ? "not known" : String(value);
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4)));
}
