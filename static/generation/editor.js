// The recipe builder. What is on the page is the recipe: it is read into the hidden field whenever
// something changes, checked by the server as one types, and drawn anew only from JSON.

import { flatLine, readLines } from "./check_fields.js";
import * as quotas from "./quotas.js";
import { append, follow, fromText, move, pressed, readFields, remove, renderFields, split, template } from "../core/schema_fields.js";

const form = document.getElementById("recipe");
const store = document.getElementById("id_recipe");
const list = document.getElementById("columns");
const jsonView = document.getElementById("json-view");
const json = document.getElementById("json");
const LABELS = Object.fromEntries([...document.querySelectorAll("#add-column [data-add]")].map((button) => [button.dataset.add, button.textContent.trim()]));
const FIRST = { text: { prompt: "" }, structured: { schema: { properties: { text: { type: "string", maxLength: 300 } }, required: ["text"] } }, judge: { criteria: [{ name: "quality", description: "Is it realistic and free of mistakes?", max: 5, at_least: 3 }] } };
const NAMES = { text: "text", structured: "row", judge: "judge", seed: "example", persona: "person" };

// --- From the recipe to the page ----------------------------------------------

let params = {}; // of the recipe as a whole, those without a field on the page

function render(recipe) {
  params = recipe.params ?? {};
  list.replaceChildren(...(recipe.columns ?? []).map((column) => card(column, recipe.quotas?.[column.name])));
  for (const found of list.children) quotas.note(found, rowsWanted());
}

const rowsWanted = () => Number(form.elements.rows.value.trim());

function card(column, wanted) {
  const found = template("column");
  const kind = column.kind ?? "category";
  found.dataset.params = JSON.stringify(column.params ?? {});
  found.dataset.column = kind;
  found.querySelector("[data-label]").textContent = LABELS[kind] ?? kind;
  found.querySelector("[data-name]").value = column.name ?? "";
  found.querySelector("[data-body]").append(document.getElementById(`kind-${kind}`).content.cloneNode(true));
  for (const element of found.querySelectorAll("[data-key]")) fill(element, at(column, element.dataset.key));
  const fields = found.querySelector("[data-schema] > [data-fields]");
  if (fields) renderFields(fields, column.schema);
  const checks = found.querySelector("[data-checks]");
  if (checks) checks.append(...(column.checks ?? []).map((check) => flatLine("check-line", check)));
  const criteria = found.querySelector("[data-criteria]");
  if (criteria) criteria.append(...(column.criteria ?? []).map((one) => flatLine("criterion-line", one)));
  const values = found.querySelector("[data-values]");
  if (values) values.value = valuesText(column);
  if (wanted) quotas.writeQuotas(found, Object.entries(wanted));
  if (kind === "seed") fillSource(found, column);
  if (column.condition || column.keep === false) found.querySelector(":scope > details").open = true;
  if (column.checks?.length || column.candidates > 1 || column.params) found.querySelector("[data-details]")?.setAttribute("open", "");
  return found;
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

function collect() {
  const wanted = {};
  const columns = [...list.children].map((found) => {
    const column = read(found);
    const own = quotas.readQuotas(found);
    if (own.length) wanted[column.name] = Object.fromEntries(own);
    return column;
  });
  return { columns, ...(Object.keys(params).length ? { params } : {}), ...(Object.keys(wanted).length ? { quotas: wanted } : {}) };
}

function read(found) {
  const column = { name: found.querySelector("[data-name]").value.trim(), kind: found.dataset.column };
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

// --- What follows from a change -----------------------------------------------

let waiting = null;

function changed() {
  for (const found of list.children) refresh(found);
  store.value = JSON.stringify(collect());
  clearTimeout(waiting);
  waiting = setTimeout(check, 400);
}

// Names that a column gives to those after it.
function namesOf(column) {
  if (column.kind === "structured") return Object.keys(column.schema?.properties ?? {});
  if (column.kind === "judge") return [`${column.name}_reason`, ...(column.criteria ?? []).map((one) => one.name)];
  if (column.kind === "seed" && (column.count ?? 1) === 1) return [column.name, ...seedFields(column).map((field) => `${column.name}_${field}`)];
  return [column.name];
}

function seedFields(column) {
  if (column.fields) return column.fields;
  if (column.dataset) return ["text", "label"];
  const first = (column.text ?? "").split("\n")[0];
  if (column.format === "csv") return first.split(/[,;\t|]/).map((name) => name.trim().replace(/\W+/g, "_")).filter(Boolean);
  if (column.format === "jsonl") {
    try { return Object.keys(JSON.parse(first)); } catch { return ["text"]; }
  }
  return ["text"];
}

function refresh(found) {
  const before = [];
  for (let other = found.previousElementSibling; other; other = other.previousElementSibling) before.unshift(read(other));
  const names = [...new Set(before.flatMap(namesOf))].filter(Boolean);
  for (const row of found.querySelectorAll("[data-chips]")) {
    row.replaceChildren(...names.map((name) => {
      const chip = document.createElement("button");
      chip.type = "button";
      chip.className = "button button-small chip";
      chip.dataset.insert = name;
      chip.textContent = `{{ ${name} }}`;
      chip.title = "Insert into prompt";
      return chip;
    }));
  }
  for (const select of found.querySelectorAll("[data-names]")) {
    const fit = select.dataset.names === "category" ? before.filter((column) => ["category", "persona"].includes(column.kind)).map((column) => column.name) : names;
    const chosen = select.dataset.chosen ?? select.value;
    delete select.dataset.chosen;
    select.replaceChildren(new Option("–", ""), ...fit.map((name) => new Option(name, name)));
    if (chosen && !fit.includes(chosen)) select.append(new Option(chosen, chosen));
    select.value = chosen;
  }
  const depends = found.querySelector("[data-key=depends_on]");
  quotas.tell(found, depends ? valuesOf(found) : [], rowsWanted());
  if (depends) found.querySelector("[data-values]").placeholder = depends.value ? `value of ${depends.value}: this, that` : "one per line, optional weight after “|”: rare | 0.2";
}

async function check() {
  const answer = await fetch(form.dataset.check, { method: "POST", body: new FormData(form) }).catch(() => null);
  if (!answer?.ok) return;
  const found = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.getElementById("problems").replaceChildren(...found.getElementById("problems").children);
  for (const sentence of found.querySelectorAll("p.error[id]")) {
    const place = document.getElementById(sentence.id);
    // A field nobody has touched yet is not called empty.
    if (place && (place.textContent || place.closest("[data-touched]"))) place.textContent = sentence.textContent.trim();
  }
  showProblems({ touched: true });
}

function showProblems({ touched = false } = {}) {
  const cards = [...list.children];
  const said = new Map();
  for (const problem of document.querySelectorAll("#problems li")) {
    const [, index] = problem.dataset.place.split(".");
    said.set(Number(index), [...(said.get(Number(index)) ?? []), problem.textContent.trim()]);
  }
  cards.forEach((found, index) => {
    const place = found.querySelector("[data-problem]");
    if (touched && !("touched" in found.dataset) && !place.textContent) return;
    place.textContent = (said.get(index) ?? []).join(" ");
    found.classList.toggle("column-bad", Boolean(place.textContent));
  });
}

// --- Hands --------------------------------------------------------------------

form.addEventListener("input", (event) => {
  const line = event.target.closest("[data-line]");
  if (line && event.target.dataset.part) line.querySelector("[data-part=kind]") && follow(line);
  if (event.target === json) return fromJson();
  if (event.target.name === "rows") for (const found of list.children) quotas.follow(found, rowsWanted());
  if ("quotas" in event.target.dataset) quotas.note(event.target.closest("[data-column]"), rowsWanted());
  if (event.target.closest("[data-schema-view]")) return fromText(event.target) && changed();
  if (list.contains(event.target) || event.target.name) changed();
});
form.addEventListener("change", async (event) => {
  (event.target.closest("[data-column]") ?? event.target.closest(".field"))?.setAttribute("data-touched", "");
  if ("upload" in event.target.dataset && event.target.files[0]) await upload(event.target);
  changed();
});

form.addEventListener("click", (event) => {
  const button = event.target.closest("button[type=button]");
  if (!button) return;
  const data = button.dataset;
  const found = button.closest("[data-column]");
  if (pressed(button)) return changed();
  if (data.add) add(data.add);
  else if ("remove" in data) remove(found);
  else if (data.move) move(found, button);
  else if (data.insert) insert(button);
  else if ("addCheck" in data) append(found.querySelector("[data-checks]"), flatLine("check-line"));
  else if ("addCriterion" in data) append(found.querySelector("[data-criteria]"), flatLine("criterion-line"));
  else if ("equal" in data) spreadQuotas(found, valuesOf(found).map((value) => [value, 1]));
  else if ("spread" in data) spreadQuotas(found, quotas.readQuotas(found));
  else if ("invent" in data) return invent(found, button);
  else if (button.id === "as-json") toggleJson(button);
  else return;
  changed();
});

function add(kind) {
  const taken = new Set([...list.children].map((found) => found.querySelector("[data-name]").value));
  const wish = NAMES[kind] ?? kind;
  let name = wish;
  for (let number = 2; taken.has(name); number += 1) name = `${wish}_${number}`;
  const found = card({ ...FIRST[kind], name, kind });
  list.append(found);
  found.scrollIntoView({ block: "nearest" });
  found.querySelector("[data-name]").select();
}

// Where the cursor is, so that a sentence can be written around it.
function insert(button) {
  const prompt = button.closest(".field").querySelector("textarea");
  prompt.focus();
  prompt.setRangeText(`{{ ${button.dataset.insert} }}`, prompt.selectionStart, prompt.selectionEnd, "end");
}

// Those that a column chooses from, where they are its own and not another one's.
function valuesOf(found) {
  const { values } = read(found);
  return Array.isArray(values) ? values : [];
}

function spreadQuotas(found, shares) {
  if (!shares.length || !(rowsWanted() > 0)) return;
  quotas.writeQuotas(found, quotas.spread(shares, rowsWanted()));
  quotas.note(found, rowsWanted());
}

async function invent(found, button) {
  const said = found.querySelector("[data-status-text]");
  const body = new FormData();
  body.set("about", found.querySelector("[data-key=about]").value);
  body.set("target", form.elements.target.value);
  body.set("thinking", form.elements.thinking.value);
  body.set("count", found.querySelector("[data-count]").value);
  body.set("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
  button.disabled = true;
  said.textContent = "";
  try {
    const answer = await (await fetch(form.dataset.personas, { method: "POST", body })).json();
    if (answer.problem) said.textContent = answer.problem;
    else found.querySelector("[data-key=values]").value = answer.values.join("\n");
  } catch {
    said.textContent = "Workbench did not respond. Try again.";
  }
  button.disabled = false;
  changed();
}

async function upload(input) {
  const [file] = input.files;
  const found = input.closest("[data-column]");
  const format = { csv: "csv", tsv: "csv", jsonl: "jsonl", json: "jsonl", md: "document" }[file.name.split(".").pop().toLowerCase()];
  const said = found.querySelector("[data-status-text]");
  said.textContent = "";
  if (file.size > 4_000_000) {
    said.textContent = "The file is larger than 4 MB. Import it as a dataset and use that as the source.";
    return;
  }
  const start = await file.slice(0, 5).text();
  if (start.startsWith("%PDF-") || start.startsWith("PK\u0003\u0004")) {
    const kind = start.startsWith("%") ? "PDF" : "Word, Excel, EPUB or zip";
    said.textContent = `“${file.name}” is a ${kind} file, not text. Copy the text out of it, or save it as .txt or .md.`;
    input.value = "";
    return;
  }
  if (format) found.querySelector("[data-key=format]").value = format;
  found.querySelector("[data-key=text]").value = await file.text();
}

function toggleJson(button) {
  jsonView.hidden = !jsonView.hidden;
  list.hidden = document.getElementById("add-column").hidden = !jsonView.hidden;
  button.setAttribute("aria-pressed", String(!jsonView.hidden));
  json.value = JSON.stringify(collect(), null, 2);
}

function fromJson() {
  const said = document.getElementById("json-error");
  try {
    render(JSON.parse(json.value));
    said.textContent = "";
    changed();
  } catch (error) {
    said.textContent = `Not valid JSON: ${error.message}`;
  }
}

// A preview says what is wrong, too: then everything is shown.
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id === "preview") showProblems();
});
document.addEventListener("htmx:configRequest", (event) => {
  if (event.target.name === "try") event.detail.parameters.set?.("try", event.target.value);
});

render(JSON.parse(store.value || "{}"));
for (const found of list.children) refresh(found);
store.value = JSON.stringify(collect());
showProblems();
