// Keyboard shortcuts of the chat page, and their list on "?".

import { click, lastOf, openPalette } from "./list/palette.js";
import { togglePanel } from "./panel/panel.js";
import { toggleTemporary } from "./temporary.js";

const keys = document.getElementById("keys");
const composer = document.querySelector("[data-composer] textarea");

function move(step) {
  const links = [...document.querySelectorAll("#chat-links .chat-link[href]")];
  const here = links.findIndex((link) => link.hasAttribute("aria-current"));
  links[here < 0 ? 0 : here + step]?.click();
}

function copyLast() {
  const button = lastOf(".answer [data-copy]");
  if (button) button.click();
}

const ANSWER_NOW = "[data-answer-now]:not([hidden])";

// What a key does. `code` is the key's place, so that Alt works where it types other letters.
const SHORTCUTS = [
  { key: "?", act: () => keys.showModal() },
  { key: "/", act: openPalette },
  { code: "KeyK", mod: true, anywhere: true, act: openPalette },
  { code: "KeyN", alt: true, anywhere: true, act: () => click(".chat-new") },
  { code: "KeyT", alt: true, anywhere: true, act: toggleTemporary },
  { code: "KeyM", alt: true, anywhere: true, act: () => togglePanel() },
  { code: "KeyR", alt: true, anywhere: true, act: () => lastOf("[data-regenerate]")?.click() },
  { code: "KeyA", alt: true, anywhere: true, act: () => click(ANSWER_NOW) },
  { code: "KeyC", alt: true, anywhere: true, act: copyLast },
  { code: "KeyE", alt: true, anywhere: true, act: () => lastOf("[data-edit]")?.click() },
  { code: "KeyZ", alt: true, anywhere: true, act: () => click("[data-undo]") },
  { code: "ArrowUp", alt: true, anywhere: true, act: () => move(-1) },
  { code: "ArrowDown", alt: true, anywhere: true, act: () => move(1) },
  { code: "KeyI", alt: true, anywhere: true, act: () => composer?.focus() },
];

// On some keyboards Alt (Option) types: € on one, an accent on another. Then the key is a letter of
// the text, or a step in it, and no command.
function types(event) {
  const letter = event.code.startsWith("Key") ? event.code.slice(3).toLowerCase() : event.key.toLowerCase();
  const isStep = event.code.startsWith("Arrow") && event.target.value;
  return isTyping(event.target) && (event.key.toLowerCase() !== letter || isStep);
}

function isTyping(target) {
  return target.matches?.("input, textarea, select") || target.isContentEditable;
}

document.addEventListener("keydown", (event) => {
  if (event.isComposing || document.querySelector("dialog[open]")) return;
  const mod = event.ctrlKey || event.metaKey;
  for (const { key, code, alt = false, mod: wanted = false, anywhere, act } of SHORTCUTS) {
    if (key ? event.key !== key || event.altKey : event.code !== code || event.altKey !== alt) continue;
    if (mod !== wanted || (!anywhere && isTyping(event.target)) || (alt && types(event))) continue;
    event.preventDefault();
    act();
    return;
  }
  // In an empty composer the key of every terminal: what was asked last.
  if (event.key === "ArrowUp" && event.target === composer && !composer.value) {
    const edit = lastOf("[data-edit]");
    if (edit) {
      event.preventDefault();
      edit.click();
    }
  }
});

keys?.addEventListener("click", ({ target }) => target === keys && keys.close());
