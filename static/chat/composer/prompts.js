// Prompts: “/” in an empty field lists them, Tab or Enter inserts one, then Tab goes from variable to
// variable.

import { place } from "./chips.js";

const VARIABLE = /\{\{[^{}]+\}\}/g;
const input = document.querySelector("[data-prompts]");
const list = document.getElementById("prompt-menu");
let at = 0;
let asked = 0;

const options = () => [...list.querySelectorAll("[role=option]")];
const isOpen = () => list.matches(":popover-open");

function mark() {
  for (const [index, option] of options().entries()) {
    option.setAttribute("aria-selected", String(index === at));
    if (index === at) option.scrollIntoView({ block: "nearest" });
  }
  input.setAttribute("aria-activedescendant", options()[at]?.id ?? "");
}

function close() {
  asked += 1;
  if (isOpen()) list.hidePopover();
  input.removeAttribute("aria-activedescendant");
  input.removeAttribute("aria-controls");
}

async function search() {
  const words = /^\/(\S*)$/.exec(input.value);
  if (!words) return close();
  const number = asked += 1;
  const found = await fetch(`${input.dataset.prompts}?q=${encodeURIComponent(words[1])}`).catch(() => null);
  if (!found?.ok || number !== asked) return;
  list.innerHTML = await found.text();
  if (number !== asked) return;
  at = 0;
  if (!isOpen()) list.showPopover();
  place(list, input.closest(".composer"));
  input.setAttribute("aria-controls", "prompt-options");
  mark();
}

export function insert(text) {
  close();
  input.value = text;
  input.dispatchEvent(new Event("input", { bubbles: true }));
  input.focus();
  if (!selectNext(0)) input.setSelectionRange(text.length, text.length);
}

// Selects the first variable from a place on; after the last, the first again.
function selectNext(from) {
  const found = [...input.value.matchAll(VARIABLE)];
  const next = found.find((match) => match.index >= from) ?? found[0];
  if (!next) return false;
  input.setSelectionRange(next.index, next.index + next[0].length);
  return true;
}

function run() {
  const option = options()[at];
  if (!option) return;
  if (option.dataset.href) location.href = option.dataset.href;
  else insert(option.dataset.text);
}

function onKey(event) {
  if (event.isComposing) return;
  if (isOpen()) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const isTab = event.key === "Tab" && !event.shiftKey;
    if (!step && !isTab && !["Enter", "Escape"].includes(event.key)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (step) {
      at = (at + step + options().length) % options().length;
      mark();
    } else if (event.key === "Escape") {
      close();
    } else {
      run();
    }
  } else if (event.key === "Tab" && !event.shiftKey && selectNext(input.selectionEnd)) {
    event.preventDefault();
  }
}

if (input) {
  input.addEventListener("input", search);
  input.addEventListener("keydown", onKey, { capture: true });
  input.addEventListener("blur", close);
  list.addEventListener("mousedown", (event) => {
    event.preventDefault(); // the field keeps the focus
    const index = options().indexOf(event.target.closest("[role=option]"));
    if (index < 0) return;
    at = index;
    run();
  });
}
