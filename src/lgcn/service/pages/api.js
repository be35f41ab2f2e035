import { make, table } from "./parts.js";

const response = await fetch("/openapi.json");
const api = await response.json();

function resolved(schema) {
  if (!schema) return {};
  if (schema.$ref) return resolved(schema.$ref.split("/").slice(1).reduce((part, name) => part[name], api));
  return schema;
}

function kind(schema) {
  if (!schema) return "any";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.anyOf) return schema.anyOf.map(kind).join(" or ");
  if (schema.type === "array") return `list of ${kind(schema.items)}`;
  if (schema.type === "object" && schema.additionalProperties) return `object of ${kind(schema.additionalProperties)}`;
  return schema.type || "any";
}

function fields(name, schema) {
  const found = resolved(schema);
  const needed = found.required || [];
  const rows = Object.entries(found.properties || {}).map(([key, one]) => [
    make("th", key, { scope: "row" }), kind(one) + (needed.includes(key) ? "" : ", optional"), one.description || "",
  ]);
  return table(`${name}: ${found.description || "JSON object"}`, ["Field", "Type", "Meaning"], rows);
}

function nested(schema, seen = new Set()) {
  for (const one of [schema?.items, schema?.additionalProperties, ...(schema?.anyOf || []), ...Object.values(resolved(schema).properties || {})]) {
    if (!one) continue;
    if (one.$ref && !seen.has(one.$ref)) seen.add(one.$ref);
    nested(one.$ref ? resolved(one) : one, seen);
  }
  return seen;
}

document.getElementById("summary").textContent = `${api.info.title}, version ${api.info.version}. Errors are JSON: {"error": …, "field": …}.`;
const groups = new Map();
for (const [path, methods] of Object.entries(api.paths)) {
  for (const [method, operation] of Object.entries(methods)) {
    const tag = operation.tags?.[0] || "other";
    if (!groups.has(tag)) groups.set(tag, []);
    groups.get(tag).push([method.toUpperCase(), path, operation]);
  }
}
const parts = [];
for (const [tag, operations] of groups) {
  const section = make("section", null, { class: "card" });
  section.append(make("h2", tag[0].toUpperCase() + tag.slice(1)));
  for (const [method, path, operation] of operations) {
    const details = make("details");
    const summary = make("summary");
    summary.append(make("span", `${method} `, { class: "method" }), make("code", path), make("span", ` ${operation.summary || ""}`));
    details.append(summary, make("p", operation.description || "", { class: "hint" }));
    const schema = operation.requestBody?.content?.["application/json"]?.schema;
    if (schema) {
      details.append(fields("Body", schema));
      for (const one of nested(resolved(schema))) details.append(fields(one.split("/").at(-1), { $ref: one }));
    }
    section.append(details);
  }
  parts.push(section);
}
const main = document.getElementById("routes");
main.style.display = "grid";
main.style.gap = "1rem";
main.replaceChildren(...parts);
document.body.dataset.ready = "true";
