// Forms of the columns, in the middle: what is on the page is the recipe. Drawn from its JSON, and
// read back into it.

import { flatLine, readLines } from "../check_fields.js";
import * as quotas from "../quotas.js";
import { readFields, renderFields, split, template } from "../../../core/forms/schema_fields.js";

export const list = document.getElementById("columns");
export const optionOf = (kind) => document.getElementById(`add-${kind}`);
export const nameOf = (found) => found.querySelector("[data-name]").value.trim();
export const forms = () => [...list.children];

// A category that depends on another one is a type of its own to who reads the list.
export const typeOf = (found) => (found.dataset.column === "category" && found.querySelector("[data-key=depends_on]")?.value ? "subcategory" : found.dataset.column);

// --- From the recipe to the page ----------------------------------------------

export function form(column, wanted) {
  const found = template("column");
  const kind = column.kind ?? "category";
  found.dataset.params = JSON.stringify(column.params ?? {});
  found.dataset.column = kind;
  found.querySelector("[data-name]").value = column.name ?? "";
  found.querySelector("[data-body]").append(document.getElementById(`kind-${kind}`).content.cloneNode(true));
  for (const element of found.querySelectorAll("[data-key]")) fill(element, at(column, element.dataset.key));
  const fields = found.querySelector("[data-schema] > [data-fields]");
  if (fields) renderFields(fields, column.schema);
  found.querySelector("[data-checks]")?.append(...(column.checks ?? []).map((check) => flatLine("check-line", check)));
  found.querySelector("[data-criteria]")?.append(...(column.criteria ?? []).map((one) => flatLine("criterion-line", one)));
  const values = found.querySelector("[data-values]");
  if (values) values.value = valuesText(column);
  if (wanted) quotas.writeQuotas(found, Object.entries(wanted));
  if (kind === "seed") fillSource(found, column);
  if (column.condition || column.keep === false) found.querySelector(":scope > details").open = true;
  if (column.candidates > 1) found.querySelector("[data-details]")?.setAttribute("open", "");
  describe(found);
  return found;
}

// Icon, type and help in the head of the form.
export function describe(found) {
  const option = optionOf(typeOf(found));
  if (!option) return;
  found.querySelector("[data-icon]").replaceChildren(option.querySelector("svg").cloneNode(true));
  found.querySelector("[data-label]").textContent = `${option.dataset.label}, ${option.dataset.family.toLowerCase()}`;
  found.querySelector("[data-help]").textContent = option.dataset.help;
}

const at = (column, key) => key.split(".").reduce((found, step) => found?.[step], column);

function fill(element, value) {
  if (element.dataset.as === "unless") element.checked = value === false;
  else if (element.dataset.as === "boolean") element.checked = value === true;
  else if (element.dataset.as === "lines") element.value = (value ?? []).join("\n");
  else if (element.dataset.names) element.dataset.chosen = value ?? "";
  else if (element.dataset.key === "params.thinking" && value) pickThinking(element, String(value));
  else if (value !== undefined) element.value = value;
}

// A recipe may have another number of tokens than those to choose from.
function pickThinking(select, value) {
  if (![...select.options].some((option) => option.value === value)) select.add(new Option(`Up to ${value} tokens`, value));
  select.value = value;
}

function valuesText(column) {
  if (column.depends_on) return Object.entries(column.values ?? {}).map(([value, inner]) => `${value}: ${inner.join(", ")}`).join("\n");
  return (column.values ?? []).map((value, index) => {
    const weight = value?.weight ?? column.weights?.[index];
    return weight === undefined ? String(value?.value ?? value) : `${value?.value ?? value} | ${weight}`;
  }).join("\n");
}

function fillSource(found, column) {
  const source = found.querySelector("[data-source]");
  if (column.stored) {
    source.prepend(new Option("Rows of the earlier job", "stored"));
    found.dataset.stored = JSON.stringify({ stored: column.stored, fields: column.fields });
  }
  if (column.rows) {
    found.querySelector("[data-key=format]").value = "jsonl";
    found.querySelector("[data-key=text]").value = column.rows.map((row) => JSON.stringify(row)).join("\n");
  }
  source.value = column.stored ? "stored" : String(column.dataset ?? "text");
}

// --- From the page to the recipe ----------------------------------------------

export function read(found) {
  const column = { name: nameOf(found), kind: found.dataset.column };
  // Parameters without a field are kept; those with one are read from it.
  const { temperature, max_tokens, thinking, ...others } = JSON.parse(found.dataset.params ?? "{}");
  if (Object.keys(others).length) column.params = others;
  for (const element of found.querySelectorAll("[data-key]")) put(column, element);
  const fields = found.querySelector("[data-schema] > [data-fields]");
  if (fields) column.schema = readFields(fields);
  const checks = found.querySelector("[data-checks]");
  if (checks?.children.length) column.checks = readLines(checks, ["min", "max"]);
  const criteria = found.querySelector("[data-criteria]");
  if (criteria) column.criteria = readLines(criteria, ["max", "at_least"]);
  if (found.querySelector("[data-values]")) readValues(found, column);
  if (column.kind === "seed") readSource(found, column);
  return column;
}

function put(column, element) {
  const [first, second] = element.dataset.key.split(".");
  let value = element.type === "checkbox" ? element.checked : element.value;
  if (element.dataset.as === "unless") value = element.checked ? false : undefined;
  else if (element.dataset.as === "boolean") value = element.checked || undefined;
  else if (element.dataset.as === "lines") value = value.split("\n").map((line) => line.trim()).filter(Boolean);
  else if (element.dataset.as === "number") value = value.trim() === "" ? undefined : numberOf(value);
  else if (value.trim?.() === "") value = undefined;
  if (value === undefined) return;
  if (second) column[first] = { ...column[first], [second]: value };
  else column[first] = value;
}

const numberOf = (text) => (/^-?\d+([.,]\d+)?$/.test(text.trim()) ? Number(text.replace(",", ".")) : text.trim());

function readValues(found, column) {
  const text = found.querySelector("[data-values]").value;
  if (column.depends_on) {
    const pairs = text.split("\n").filter((line) => line.includes(":")).map((line) => [line.slice(0, line.indexOf(":")).trim(), split(line.slice(line.indexOf(":") + 1))]);
    column.values = Object.fromEntries(pairs);
    return;
  }
  const weighed = split(text).map((line) => line.match(/^(.*?)\s*\|\s*(\d+(?:\.\d+)?)$/) ?? [null, line]);
  column.values = weighed.map(([, value]) => value);
  if (weighed.some(([, , weight]) => weight !== undefined)) column.weights = weighed.map(([, , weight]) => Number(weight ?? 1));
}

function readSource(found, column) {
  const source = found.querySelector("[data-source]").value;
  found.querySelector("[data-pasted]").hidden = source !== "text";
  if (source === "text") return;
  delete column.text;
  delete column.format;
  if (source === "stored") Object.assign(column, JSON.parse(found.dataset.stored));
  else column.dataset = Number(source);
}

// Values that a column chooses from, where they are its own and not another one's.
export function valuesOf(found) {
  const { values } = read(found);
  return Array.isArray(values) ? values : [];
}
