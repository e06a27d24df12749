// The menu with the types of columns: opened where the new column goes, filtered by typing.

import { chosenForm, freeName, insert } from "./column_list.js";
import { forms, list as formList, nameOf } from "./column_forms.js";

const menu = document.getElementById("add-menu");
const search = document.getElementById("add-search");
const none = document.getElementById("add-none");
const options = [...menu.querySelectorAll("[role=option]")];
const FIRST = {
  text: { prompt: "" },
  structured: { schema: { properties: { text: { type: "string", maxLength: 300 } }, required: ["text"] } },
  judge: { criteria: [{ name: "quality", description: "Is it realistic and free of mistakes?", max: 5, at_least: 3 }] },
};
const NAMES = { text: "text", structured: "row", judge: "judge", seed: "example", persona: "person", subcategory: "detail" };
let after = null; // the form it goes behind; null: at the end
let opener = null;
let added = () => {};

const shown = () => options.filter((option) => !option.hidden);
const active = () => document.getElementById(search.getAttribute("aria-activedescendant") ?? "");

export function openMenu(button, where) {
  after = where;
  opener = button;
  search.value = "";
  filter();
  menu.showPopover();
  place(button);
  search.focus();
}

// Below the button, or above it where there is more room. On a phone the style sheet places it.
function place(button) {
  const { left, top, bottom } = button.getBoundingClientRect();
  const height = menu.offsetHeight;
  const below = window.innerHeight - bottom - 12;
  menu.style.left = `${Math.max(8, Math.min(left, window.innerWidth - menu.offsetWidth - 8))}px`;
  menu.style.top = `${below >= height ? bottom + 4 : Math.max(8, Math.min(top - height - 4, window.innerHeight - height - 8))}px`;
}

function filter() {
  const wanted = search.value.trim().toLowerCase();
  const isCategory = forms().some((found) => ["category", "persona"].includes(found.dataset.column));
  for (const option of options) {
    option.hidden = !`${option.textContent} ${option.dataset.family}`.toLowerCase().includes(wanted) || (option.dataset.add === "subcategory" && !isCategory);
  }
  for (const group of menu.querySelectorAll("[role=group]")) group.hidden = !group.querySelector("[role=option]:not([hidden])");
  none.hidden = shown().length > 0;
  activate(shown()[0]);
}

function activate(option) {
  for (const one of options) one.setAttribute("aria-selected", String(one === option));
  if (option) search.setAttribute("aria-activedescendant", option.id);
  else search.removeAttribute("aria-activedescendant");
  option?.scrollIntoView({ block: "nearest" });
}

function pick(option) {
  if (!option) return;
  const type = option.dataset.add;
  const parent = forms().filter((found) => ["category", "persona"].includes(found.dataset.column) && (!after || formList.contains(found) && forms().indexOf(found) <= forms().indexOf(after))).at(-1);
  const kind = type === "subcategory" ? "category" : type;
  const first = type === "subcategory" && parent ? { depends_on: nameOf(parent), values: {} } : FIRST[kind];
  opener = null; // the new column takes the focus
  menu.hidePopover();
  insert({ ...first, name: freeName(NAMES[type] ?? kind), kind }, after);
  added();
}

export function listen(changed) {
  added = changed;
  search.addEventListener("input", filter);
  search.addEventListener("keydown", (event) => {
    const all = shown();
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step) activate(all[(all.indexOf(active()) + step + all.length) % all.length]);
    else if (event.key === "Enter") pick(active());
    else if (event.key === "Escape") menu.hidePopover();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  menu.addEventListener("click", (event) => pick(event.target.closest("[role=option]")));
  menu.addEventListener("pointermove", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) activate(option);
  });
  menu.addEventListener("toggle", (event) => {
    if (event.newState === "closed") opener?.focus();
  });
}

// Where a button of the page adds: after the item it stands in; at the end of the list elsewhere.
export const placeOf = (button) => button.closest(".column-item")?.form ?? null;

export const openAfterChosen = () => openMenu(document.querySelector(".column-item.is-chosen .add-here") ?? document.querySelector("[data-add-open]"), chosenForm());
