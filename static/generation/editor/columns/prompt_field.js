// Prompts: names of columns are set apart from the text, unknown ones are underlined, and `{` offers
// the columns above. A copy of the text behind the field carries the colours.

import { namesAbove } from "../names.js";

const TEMPLATE = /\{\{[\s\S]*?\}\}|\{%[\s\S]*?%\}/g;
const OPENED = /\{\{?[ \t]*([A-Za-z_]\w*)?$/;

const menu = document.createElement("div");
menu.id = "names-menu";
menu.className = "names-menu";
menu.setAttribute("role", "listbox");
menu.setAttribute("aria-label", "Columns above");
menu.hidden = true;
document.getElementById("recipe").append(menu);
let field = null; // the textarea that the menu is open for

const mirrorOf = (area) => area.parentElement.querySelector("[data-mirror]");

// --- Colours ------------------------------------------------------------------

export function paint(area, names) {
  const text = area.value;
  const loops = [...text.matchAll(/\{%-?\s*for\s+(\w+)\s+in/g)].map(([, name]) => name);
  const known = new Set([...names, ...loops, "loop"]);
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(TEMPLATE)) {
    parts.push(text.slice(end, found.index), variable(found[0], known));
    end = found.index + found[0].length;
  }
  parts.push(text.slice(end), "\u200b"); // the last line counts also when it is empty
  mirrorOf(area).replaceChildren(...parts);
}

function variable(text, known) {
  const part = document.createElement("span");
  const name = text.match(/^\{\{-?\s*([A-Za-z_]\w*)/)?.[1];
  part.className = name && !known.has(name) ? "variable variable-unknown" : "variable";
  part.textContent = text;
  return part;
}

// Chips below the field that insert a name at the cursor.
export function paintAll(form) {
  const names = namesAbove(form);
  for (const area of form.querySelectorAll("[data-prompt-field] textarea")) paint(area, names);
  for (const row of form.querySelectorAll("[data-chips]")) {
    row.previousElementSibling.hidden = !names.length;
    row.replaceChildren(...names.map(chip));
  }
}

function chip(name) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "chip chip-name";
  button.dataset.insert = name;
  button.textContent = name;
  button.setAttribute("aria-label", `Insert ${name}`);
  return button;
}

// Where the cursor is, so that a sentence can be written around it.
export function insertName(button) {
  const area = button.closest("[data-prompt-field]").querySelector("textarea");
  area.focus();
  area.setRangeText(`{{ ${button.dataset.insert} }}`, area.selectionStart, area.selectionEnd, "end");
}

// --- Names while one types ----------------------------------------------------

const options = () => [...menu.children];
const active = () => options().find((option) => option.getAttribute("aria-selected") === "true");

function offer(area) {
  const before = area.value.slice(0, area.selectionStart);
  const typed = before.match(OPENED);
  const names = typed ? namesAbove(area.closest("[data-column]")).filter((name) => name.toLowerCase().startsWith((typed[1] ?? "").toLowerCase())) : [];
  if (!names.length) return close();
  field = area;
  menu.replaceChildren(...names.map((name, at) => option(name, at)));
  menu.hidden = false;
  place(area, typed.index);
  area.setAttribute("aria-controls", menu.id);
  activate(options()[0]);
}

function option(name, at) {
  const found = document.createElement("div");
  found.id = `name-${at}`;
  found.className = "names-option";
  found.setAttribute("role", "option");
  found.textContent = name;
  return found;
}

function activate(found) {
  for (const one of options()) one.setAttribute("aria-selected", String(one === found));
  field.setAttribute("aria-activedescendant", found.id);
  found.scrollIntoView({ block: "nearest" });
}

// Below the brace: its place is that of the same character in the copy.
function place(area, index) {
  const walker = document.createTreeWalker(mirrorOf(area), NodeFilter.SHOW_TEXT);
  let left = index;
  let node = walker.nextNode();
  while (node && left > node.length) {
    left -= node.length;
    node = walker.nextNode();
  }
  const range = document.createRange();
  range.setStart(node ?? mirrorOf(area), node ? left : 0);
  const brace = range.getBoundingClientRect();
  menu.style.left = `${Math.min(brace.left, window.innerWidth - menu.offsetWidth - 8)}px`;
  const under = brace.bottom + 4;
  menu.style.top = `${under + menu.offsetHeight < window.innerHeight ? under : brace.top - menu.offsetHeight - 4}px`;
}

function accept(found) {
  const area = field;
  const start = area.value.slice(0, area.selectionStart).match(OPENED).index;
  const closing = area.value.slice(area.selectionEnd).match(/^\s*\}\}/)?.[0].length ?? 0;
  area.setRangeText(`{{ ${found.textContent} }}`, start, area.selectionEnd + closing, "end");
  close();
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

function close() {
  menu.hidden = true;
  field?.removeAttribute("aria-activedescendant");
  field?.removeAttribute("aria-controls");
  field = null;
}

export function listen(root) {
  root.addEventListener("input", ({ target }) => {
    if (target.closest("[data-prompt-field]") && target.matches("textarea")) offer(target);
  });
  root.addEventListener("keydown", (event) => {
    if (event.target !== field) return;
    const all = options();
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step) activate(all[(all.indexOf(active()) + step + all.length) % all.length]);
    else if ((event.key === "Enter" && !event.ctrlKey && !event.metaKey) || event.key === "Tab") accept(active());
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }, true); // before the editor's own Escape, which leaves the field
  root.addEventListener("focusout", ({ target }) => { if (target === field) close(); });
  menu.addEventListener("pointerdown", (event) => {
    event.preventDefault(); // the field keeps the focus
    const found = event.target.closest("[role=option]");
    if (found) accept(found);
  });
}
