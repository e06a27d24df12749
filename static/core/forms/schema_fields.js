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
  const editor = list.closest("[data-schema]");
  if (editor) editor.disabled = false; // until here a press would have done nothing
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

// --- Hands --------------------------------------------------------------------

// What a button of the editor does, or of any list of lines beside it; false for other buttons.
export function pressed(button) {
  const { dataset } = button;
  const line = button.closest("[data-line]");
  if ("addField" in dataset) append(button.closest("div").parentElement.querySelector(":scope > [data-fields]"), fieldLine());
  else if ("schemaText" in dataset) toggleText(button);
  else if (line && "remove" in dataset) remove(line);
  else if (line && dataset.move) move(line, button);
  else return false;
  return true;
}

export function append(where, line) {
  where.append(line);
  line.querySelector("input, select").focus();
}

export function remove(line) {
  const next = line.nextElementSibling ?? line.previousElementSibling;
  const around = line.parentElement;
  line.remove();
  (next?.querySelector("input, select") ?? around.parentElement.querySelector("button")).focus();
}

export function move(line, button) {
  if (button.dataset.move === "up") line.previousElementSibling?.before(line);
  else line.nextElementSibling?.after(line);
  button.focus();
}

function toggleText(button) {
  const editor = button.closest("[data-schema]");
  const view = editor.querySelector("[data-schema-view]");
  view.hidden = !view.hidden;
  button.setAttribute("aria-pressed", String(!view.hidden));
  view.querySelector("textarea").value = JSON.stringify(readFields(fieldsOf(editor)), null, 2);
}

export const fieldsOf = (editor) => editor.querySelector(":scope > [data-fields]");

// The lines from what was typed as JSON; false while that is none.
export function fromText(text) {
  const said = text.parentElement.querySelector(".error");
  try {
    renderFields(fieldsOf(text.closest("[data-schema]")), JSON.parse(text.value));
    said.textContent = "";
    return true;
  } catch (error) {
    said.textContent = `Not valid JSON: ${error.message}`;
    return false;
  }
}
