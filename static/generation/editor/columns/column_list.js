// The list of columns, at the left: choose, move by dragging or Alt+arrows, add in between. The
// order of the forms is the order of the recipe; the list is drawn from them.

import { describe, form, forms, list as formList, nameOf, optionOf, read, typeOf } from "./column_forms.js";
import { summary } from "../names.js";
import { template } from "../../../core/forms/schema_fields.js";

const list = document.getElementById("column-list");
const editor = document.getElementById("recipe");
const pane = document.getElementById("pane-columns");
const undo = document.getElementById("undo");
const itemOf = new WeakMap();
let chosen = null; // form of a column, or the name of a group of settings
let removed = null; // { found, before }

export const chosenForm = () => (chosen instanceof Element ? chosen : null);

// --- Choose -------------------------------------------------------------------

export function choose(next, { focus = "" } = {}) {
  chosen = next;
  for (const found of forms()) found.hidden = found !== next;
  for (const group of document.querySelectorAll("[data-settings]")) group.hidden = group.dataset.settings !== next;
  document.getElementById("no-column").hidden = next !== null;
  document.getElementById("json-view").hidden = next !== "json";
  document.getElementById("as-json").setAttribute("aria-pressed", String(next === "json"));
  for (const button of pane.querySelectorAll("[data-group]")) mark(button, button.dataset.group === next);
  draw();
  if (focus === "item") itemButton(next)?.focus();
  if (focus === "form") focusForm();
}

function mark(button, isChosen) {
  if (isChosen) button.setAttribute("aria-current", "true");
  else button.removeAttribute("aria-current");
}

const itemButton = (next) => (next instanceof Element ? itemOf.get(next)?.querySelector("[data-pick]") : pane.querySelector(`[data-group="${next}"]`));

export const focusList = () => (itemButton(chosen) ?? pane.querySelector("button")).focus();

// The first field that one would write in: for a new column its name, else its settings.
export function focusForm() {
  const shown = chosenForm() ?? document.querySelector(`[data-settings="${chosen}"]`) ?? document.getElementById("json-view");
  const place = shown.querySelector("[data-body] :is(textarea, input, select)") ?? shown.querySelector("input, textarea, select");
  place?.focus();
}

// --- Draw ---------------------------------------------------------------------

export function draw() {
  const items = forms().map(drawItem);
  const current = [...list.children];
  if (items.length !== current.length || items.some((item, at) => item !== current[at])) list.replaceChildren(...items);
  document.getElementById("no-column").hidden = chosen !== null || items.length > 0;
}

function drawItem(found) {
  const item = itemOf.get(found) ?? newItem(found);
  const wanted = found.querySelector("[data-quotas]")?.value.trim();
  const option = optionOf(typeOf(found));
  item.querySelector("[data-item-name]").textContent = nameOf(found) || "unnamed";
  const told = item.querySelector("[data-told]");
  told.textContent = summary(read(found), wanted);
  const icon = item.querySelector("[data-icon]");
  if (option && icon.dataset.icon !== option.id) {
    icon.dataset.icon = option.id;
    icon.replaceChildren(option.querySelector("svg").cloneNode(true));
    describe(found);
  }
  item.querySelector("[data-item-problem]").hidden = !("bad" in found.dataset);
  item.classList.toggle("is-chosen", found === chosen);
  mark(item.querySelector("[data-pick]"), found === chosen);
  item.querySelector(".add-here").tabIndex = found === chosen ? 0 : -1;
  return item;
}

function newItem(found) {
  const item = template("column-item");
  itemOf.set(found, item);
  item.form = found;
  return item;
}

// --- Add, copy, remove, move --------------------------------------------------

// Puts a column after another one; at the end without.
export function insert(column, after) {
  const found = form(column);
  if (after) after.after(found);
  else formList.append(found);
  choose(found);
  editor.dispatchEvent(new CustomEvent("segment", { detail: "form" }));
  const name = found.querySelector("[data-name]");
  name.focus();
  name.select();
  return found;
}

export function freeName(wish) {
  const taken = new Set(forms().map(nameOf));
  let name = wish;
  for (let number = 2; taken.has(name); number += 1) name = `${wish}_${number}`;
  return name;
}

export const duplicate = (found) => insert({ ...read(found), name: freeName(nameOf(found)) }, found);

export function removeColumn(found) {
  removed = { found, before: found.nextElementSibling };
  const next = found.nextElementSibling ?? found.previousElementSibling;
  found.remove();
  undo.hidden = false;
  undo.querySelector("span").textContent = `“${nameOf(found)}” deleted.`;
  choose(next, { focus: "item" });
}

export function restoreColumn() {
  if (!removed) return;
  if (removed.before?.isConnected) removed.before.before(removed.found);
  else formList.append(removed.found);
  choose(removed.found, { focus: "item" });
  removed = null;
  undo.hidden = true;
}

export function moveColumn(found, step) {
  const other = step < 0 ? found.previousElementSibling : found.nextElementSibling;
  if (!other) return false;
  if (step < 0) other.before(found);
  else other.after(found);
  draw();
  itemButton(found).focus();
  document.getElementById("moved").textContent = `${nameOf(found)}, column ${forms().indexOf(found) + 1} of ${forms().length}`;
  return true;
}

// --- Hands --------------------------------------------------------------------

export function listen(changed) {
  list.addEventListener("click", (event) => {
    const item = event.target.closest(".column-item");
    if (event.target.closest("[data-pick]")) choose(item.form);
    if (event.target.closest("[data-pick]") && window.matchMedia("(max-width: 760px)").matches) editor.dispatchEvent(new CustomEvent("segment", { detail: "form" }));
  });
  list.addEventListener("keydown", (event) => keys(event, changed));
  drag(changed);
}

function keys(event, changed) {
  const item = event.target.closest("[data-pick]") && event.target.closest(".column-item");
  if (!item) return;
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (step && event.altKey) moveColumn(item.form, step) && changed();
  else if (step) choose((step < 0 ? item.previousElementSibling : item.nextElementSibling)?.form ?? item.form, { focus: "item" });
  else if (event.key === "Enter") choose(item.form, { focus: "form" });
  else if (event.key === "Delete") { removeColumn(item.form); changed(); }
  else return;
  event.preventDefault();
}

function drag(changed) {
  let dragged = null;
  list.addEventListener("dragstart", (event) => {
    dragged = event.target.closest(".column-item");
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", nameOf(dragged.form));
    dragged.classList.add("is-dragged");
  });
  list.addEventListener("dragover", (event) => {
    const over = event.target.closest(".column-item");
    if (!dragged || !over) return;
    event.preventDefault();
    if (over === dragged) return;
    const { top, height } = over.getBoundingClientRect();
    if (event.clientY < top + height / 2) over.before(dragged);
    else over.after(dragged);
  });
  list.addEventListener("dragend", () => {
    dragged?.classList.remove("is-dragged");
    dragged = null;
    const order = [...list.children].map((item) => item.form);
    if (order.every((found, at) => found === formList.children[at])) return;
    formList.append(...order);
    draw();
    changed();
  });
}
