// JSON schemas as lines that can be edited, with objects inside objects, and back.

export const template = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);

const part = (line, name) => line.querySelector(`:scope > [data-part=${name}], :scope > .limits > [data-part=${name}]`);

// Values one a line, or separated by commas where there is one line.
export function split(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  const parts = lines.length > 1 ? lines : text.split(",");
  return [...new Set(parts.map((value) => value.trim()).filter(Boolean))];
}

export const joined = (values) => values.join(values.some((value) => String(value).includes(",")) ? "\n" : ", ");

// Shows what belongs to a line's kind; what was typed for another one is kept.
export function follow(line) {
  const kind = part(line, "kind").value;
  const inner = kind === "array" ? part(line, "items")?.value : kind;
  for (const element of line.querySelectorAll(":scope > [data-for]")) {
    const kinds = element.dataset.for.split(" ");
    element.hidden = !kinds.includes(kind) && !(kind === "array" && ["enum", "object"].includes(inner) && kinds.includes(inner));
  }
}

export function renderFields(list, schema) {
  list.replaceChildren();
  for (const [name, inner] of Object.entries(schema?.properties ?? {})) {
    list.append(fieldLine(name, inner, (schema.required ?? []).includes(name)));
  }
}

export function fieldLine(name = "", schema = { type: "string" }, required = true) {
  const line = template("field-line");
  const set = (key, value) => { part(line, key).value = value ?? ""; };
  const inner = schema.type === "array" ? schema.items ?? {} : schema;
  const kindOf = (found) => (found.enum ? "enum" : found.type ?? "string");
  set("name", name);
  set("kind", schema.type === "array" ? "array" : kindOf(schema));
  if (schema.type === "array") set("items", kindOf(inner));
  set("required", required ? "yes" : "no");
  for (const key of ["maxLength", "minimum", "maximum", "maxItems", "description"]) set(key, schema[key]);
  if (inner.enum) set("values", joined(inner.enum));
  if (inner.type === "object") renderFields(line.querySelector("[data-fields]"), inner);
  line.dataset.rest = JSON.stringify(restOf(schema));
  follow(line);
  return line;
}

// What the lines have no place for, such as a smallest length, is carried along.
function restOf(schema) {
  const shown = ["type", "enum", "maxLength", "minimum", "maximum", "maxItems", "description", "properties", "required", "items"];
  return Object.fromEntries(Object.entries(schema).filter(([key]) => !shown.includes(key)));
}

export function readFields(list) {
  const properties = {};
  const required = [];
  for (const line of list.children) {
    const name = part(line, "name").value.trim();
    if (!name) continue;
    properties[name] = { ...JSON.parse(line.dataset.rest ?? "{}"), ...property(line) };
    if (part(line, "required").value === "yes") required.push(name);
  }
  return { type: "object", required, properties };
}

function property(line) {
  const value = (name) => part(line, name).value.trim();
  const of = (kind) => {
    if (kind === "enum") return { type: "string", enum: split(value("values")) };
    if (kind === "object") return readFields(line.querySelector("[data-fields]"));
    return { type: kind };
  };
  const number = (name) => (/^-?\d+(\.\d+)?$/.test(value(name)) ? { [name]: Number(value(name)) } : {});
  const kind = value("kind");
  const description = value("description") ? { description: value("description") } : {};
  if (kind === "array") return { type: "array", items: of(value("items")), ...number("maxItems"), ...description };
  const limits = { string: ["maxLength"], integer: ["minimum", "maximum"], number: ["minimum", "maximum"] }[kind] ?? [];
  return Object.assign(of(kind), ...limits.map(number), description);
}

// Lines of checks and of a judge's criteria: flat, all parts by their names.
export function readLines(list, numbers) {
  return [...list.children].map((line) => {
    const found = {};
    for (const element of line.querySelectorAll("[data-part]")) {
      if (element.closest("[data-for]")?.hidden) continue;
      const text = element.value.trim();
      if (text) found[element.dataset.part] = numbers.includes(element.dataset.part) ? Number(text) : text;
    }
    return found;
  });
}

export function flatLine(id, data = {}) {
  const line = template(id);
  for (const [key, value] of Object.entries(data)) {
    const element = line.querySelector(`[data-part=${key}]`);
    if (element) element.value = value;
  }
  if (line.querySelector("[data-for]")) follow(line);
  return line;
}
