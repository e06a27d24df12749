// The editor of a recipe: columns at the left, the chosen one in the middle, rows at the right. The
// recipe is read into the hidden field whenever something changes, and checked by the server.

import * as menu from "./columns/add_menu.js";
import { flatLine } from "./check_fields.js";
import { form, forms, list, nameOf, read, valuesOf } from "./columns/column_forms.js";
import * as columns from "./columns/column_list.js";
import * as drafts from "./drafts.js";
import { columnsAbove, namesAbove } from "./names.js";
import * as preview from "./preview/preview.js";
import * as problems from "./preview/problems.js";
import * as prompt from "./columns/prompt_field.js";
import * as quotas from "./quotas.js";
import { settingSummaries } from "./settings.js";
import { invent, upload } from "./columns/sources.js";
import { append, follow, fromText, pressed } from "../../core/forms/schema_fields.js";

const editor = document.getElementById("recipe");
const store = document.getElementById("id_recipe");
const json = document.getElementById("json");
const saved = document.getElementById("saved");
let params = {}; // of the recipe as a whole, those without a field on the page
let waiting = null;
let isSent = false;

const rowsWanted = () => Number(editor.elements.rows.value.trim());

// --- The recipe ---------------------------------------------------------------

function render(recipe) {
  params = recipe.params ?? {};
  list.replaceChildren(...(recipe.columns ?? []).map((column) => form(column, recipe.quotas?.[column.name])));
  for (const found of forms()) quotas.note(found, rowsWanted());
}

function collect() {
  const wanted = {};
  const all = forms().map((found) => {
    const column = read(found);
    const own = quotas.readQuotas(found);
    if (own.length) wanted[column.name] = Object.fromEntries(own);
    return column;
  });
  return { columns: all, ...(Object.keys(params).length ? { params } : {}), ...(Object.keys(wanted).length ? { quotas: wanted } : {}) };
}

// Everything that follows from what is on the page.
function update() {
  for (const found of forms()) refresh(found);
  columns.draw();
  settingSummaries(editor);
  store.value = JSON.stringify(collect());
  const rows = rowsWanted();
  editor.querySelector("[data-start-label]").textContent = rows > 0 ? `Start ${rows.toLocaleString("en")} row${rows === 1 ? "" : "s"}` : "Start";
  const chosen = columns.chosenForm();
  editor.querySelector(".editor-segments [data-segment=form]").textContent = chosen ? nameOf(chosen) || "Column" : "Settings";
  preview.marksTheChosen(chosen ? nameOf(chosen) : "");
}

function changed() {
  update();
  clearTimeout(waiting);
  waiting = setTimeout(check, 400);
  saved.textContent = "Edited";
}

function keepDraft() {
  if (saved.textContent !== "Edited" || isSent) return;
  saved.textContent = drafts.save(editor) ? "Edited, draft saved" : "Edited";
}

function refresh(found) {
  prompt.paintAll(found);
  for (const select of found.querySelectorAll("[data-names]")) {
    const fit = select.dataset.names === "category" ? columnsAbove(found).filter((column) => ["category", "persona"].includes(column.kind)).map((column) => column.name) : namesAbove(found);
    const chosen = select.dataset.chosen ?? select.value;
    delete select.dataset.chosen;
    select.replaceChildren(new Option("No column", ""), ...fit.map((name) => new Option(name, name)));
    if (chosen && !fit.includes(chosen)) select.append(new Option(chosen, chosen));
    select.value = chosen;
  }
  const depends = found.querySelector("[data-key=depends_on]");
  quotas.tell(found, depends ? valuesOf(found) : [], rowsWanted());
  if (depends) found.querySelector("[data-values]").placeholder = depends.value ? `value of ${depends.value}: this, that` : "one per line, optional weight after “|”: rare | 0.2";
}

async function check() {
  keepDraft();
  const answer = await fetch(editor.dataset.check, { method: "POST", body: preview.formData() }).catch(() => null);
  if (!answer?.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  problems.take(page);
  preview.take(page.querySelectorAll("#marks li"));
  preview.paint();
  if (preview.isFresh() && document.getElementById("estimate").dataset.rows !== String(rowsWanted())) attempt(preview.rowsShown() > 3 ? 10 : 3);
}

// --- Try and start ------------------------------------------------------------

async function attempt(count) {
  store.value = JSON.stringify(collect());
  const page = await preview.tryRows(count);
  if (!page) return;
  problems.take(page, { everything: true });
  if (page.querySelector("#preview-answer > .notice-warn")) problems.goToFirst();
}

function newRows() {
  editor.elements.seed.value = String(Math.floor(Math.random() * 10_000));
  preview.forgetRows();
  update();
  attempt(preview.rowsShown() > 3 ? 10 : 3);
}

async function start(event) {
  event.preventDefault();
  const button = document.getElementById("start");
  const said = document.getElementById("start-problem");
  store.value = JSON.stringify(collect());
  button.disabled = true;
  said.textContent = "";
  const headers = { "HX-Request": "true" };
  const answer = await fetch(editor.action, { method: "POST", body: new FormData(editor), headers }).catch(() => null);
  const place = answer?.headers.get("HX-Redirect");
  if (place) {
    isSent = true;
    drafts.forget();
    window.location.assign(place);
    return;
  }
  button.disabled = false;
  const text = answer ? await answer.text() : "";
  if (answer?.status !== 422) {
    const isPlain = answer?.headers.get("Content-Type")?.startsWith("text/plain");
    said.textContent = isPlain ? text : "Workbench did not respond. Nothing is lost. Try again.";
    return;
  }
  problems.take(new DOMParser().parseFromString(text, "text/html"), { everything: true });
  said.textContent = "The job was not started. Fix the marked fields.";
  problems.goToFirst();
}

// --- Hands --------------------------------------------------------------------

editor.addEventListener("submit", start);
window.addEventListener("pagehide", keepDraft);
editor.addEventListener("input", (event) => {
  const line = event.target.closest("[data-line]");
  if (line && event.target.dataset.part) line.querySelector("[data-part=kind]") && follow(line);
  if (event.target === json) return fromJson();
  if (event.target.name === "rows") for (const found of forms()) quotas.follow(found, rowsWanted());
  if ("quotas" in event.target.dataset) quotas.note(event.target.closest("[data-column]"), rowsWanted());
  if (event.target.closest("[data-schema-view]")) return fromText(event.target) && changed();
  if (list.contains(event.target) || event.target.name) changed();
});
editor.addEventListener("change", async (event) => {
  (event.target.closest("[data-column]") ?? event.target.closest(".field"))?.setAttribute("data-touched", "");
  if ("upload" in event.target.dataset && event.target.files[0]) await upload(event.target);
  if (event.target !== json) changed();
});
editor.addEventListener("segment", (event) => segment(event.detail));

editor.addEventListener("click", async (event) => {
  const button = event.target.closest("button[type=button]");
  if (!button) return;
  const { dataset } = button;
  const found = button.closest("[data-column]");
  if (found && pressed(button)) return changed();
  if (dataset.segment) return segment(dataset.segment);
  if (dataset.try) return attempt(Number(dataset.try));
  if ("addOpen" in dataset) return menu.openMenu(button, menu.placeOf(button));
  if (button.id === "new-rows") return newRows();
  if (button.id === "as-json") return toggleJson();
  if (dataset.group) columns.choose(dataset.group);
  if (dataset.group) segment("form");
  if ("duplicate" in dataset) columns.duplicate(found);
  else if ("remove" in dataset && found) columns.removeColumn(found);
  else if ("undo" in dataset) columns.restoreColumn();
  else if (dataset.insert) prompt.insertName(button);
  else if ("addCheck" in dataset) append(found.querySelector("[data-checks]"), flatLine("check-line"));
  else if ("addCriterion" in dataset) append(found.querySelector("[data-criteria]"), flatLine("criterion-line"));
  else if ("equal" in dataset) spreadQuotas(found, valuesOf(found).map((value) => [value, 1]));
  else if ("spread" in dataset) spreadQuotas(found, quotas.readQuotas(found));
  else if ("invent" in dataset) await invent(found, button, editor);
  else if ("discard" in dataset) return discard();
  else if (!("pick" in dataset) && !dataset.group) return;
  changed();
});

// T, Shift+T and A where nobody types; Ctrl+Enter and Escape everywhere.
editor.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    if (!document.getElementById("start").disabled) editor.requestSubmit();
  } else if (event.key === "Escape" && event.target.closest(".pane-form, .pane-preview, .start-bar, .editor-head")) {
    segment("columns");
    columns.focusList();
  } else if (event.key === "Enter" && event.target.matches(".editor-head input, .pane input:not([type=checkbox])")) {
    event.preventDefault(); // only Ctrl+Enter starts
  }
});
document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox]), textarea, select, [popover], dialog")) return;
  const key = event.key.toLowerCase();
  if (key === "t") attempt(event.shiftKey ? 10 : 3);
  else if (key === "a" && !event.shiftKey) menu.openAfterChosen();
  else return;
  event.preventDefault();
});

function segment(name) {
  editor.dataset.segment = name;
  for (const button of editor.querySelectorAll(".editor-segments [data-segment]")) button.setAttribute("aria-pressed", String(button.dataset.segment === name));
}

function spreadQuotas(found, shares) {
  if (!shares.length || !(rowsWanted() > 0)) return;
  quotas.writeQuotas(found, quotas.spread(shares, rowsWanted()));
  quotas.note(found, rowsWanted());
}

function toggleJson() {
  const isOpen = !document.getElementById("json-view").hidden;
  columns.choose(isOpen ? forms()[0] ?? null : "json");
  segment("form");
  json.value = JSON.stringify(collect(), null, 2);
  update();
}

function fromJson() {
  const said = document.getElementById("json-error");
  try {
    render(JSON.parse(json.value));
    for (const found of forms()) found.hidden = true;
    said.textContent = "";
    changed();
  } catch (error) {
    said.textContent = `Not valid JSON: ${error.message}`;
  }
}

function discard() {
  isSent = true; // it is gone on purpose
  drafts.forget();
  window.location.reload();
}

// --- Begin --------------------------------------------------------------------

columns.listen(changed);
menu.listen(changed);
prompt.listen(editor);
const isRefused = "refused" in editor.dataset;
if (!isRefused && drafts.restore(editor)) saved.replaceChildren("Draft restored. ", Object.assign(document.createElement("button"), { type: "button", className: "button-link", textContent: "Discard" }));
saved.querySelector("button")?.setAttribute("data-discard", "");
render(JSON.parse(store.value || "{}"));
columns.choose(forms().at(-1) ?? null);
update();
problems.show({ everything: isRefused });
if (isRefused) problems.goToFirst();
editor.dataset.ready = "";
