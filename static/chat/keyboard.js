// Keyboard shortcuts of the chat page, their list on "?", and the command palette.

const keys = document.getElementById("keys");
const palette = document.getElementById("palette");
const sought = palette?.querySelector("input");
const options = palette?.querySelector("[role=listbox]");
const composer = document.querySelector("[data-composer] textarea");

const click = (selector) => document.querySelector(selector)?.click();
const lastOf = (selector) => [...document.querySelectorAll(selector)].at(-1);

function openSheet() {
  const sheet = document.getElementById("settings");
  if (sheet?.togglePopover()) sheet.focus();
}

function move(step) {
  const links = [...document.querySelectorAll("#chat-links .chat-link[href]")];
  const here = links.findIndex((link) => link.hasAttribute("aria-current"));
  links[here < 0 ? 0 : here + step]?.click();
}

function copyLast() {
  const button = lastOf(".answer [data-copy]");
  if (button) button.click();
}

function find() {
  const drawer = document.getElementById("list");
  if (getComputedStyle(drawer).display === "none") drawer.showPopover();
  document.getElementById("find").focus();
}

const ANSWER_NOW = "[data-answer-now]:not([hidden])";

// What a key does. `code` is the key's place, so that Alt works where it types other letters.
const SHORTCUTS = [
  { key: "?", act: () => keys.showModal() },
  { key: "/", act: find },
  { code: "KeyK", mod: true, anywhere: true, act: () => openPalette() },
  { code: "KeyN", alt: true, anywhere: true, act: () => click(".chat-new") },
  { code: "KeyM", alt: true, anywhere: true, act: openSheet },
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

for (const dialog of [keys, palette]) {
  dialog?.addEventListener("click", ({ target }) => target === dialog && dialog.close());
}
document.querySelector("[data-keys]")?.addEventListener("click", () => keys.showModal());

// --- The palette ------------------------------------------------------------------------------

// Commands are what the page has: its links, its menu, the places of the workbench.
function commands() {
  const found = [
    { label: "New chat", act: () => click(".chat-new") },
    { label: "Search all chats", act: find },
    { label: "Keyboard shortcuts", act: () => keys.showModal() },
  ];
  if (document.getElementById("settings")) {
    found.push({ label: "Model and parameters", act: openSheet });
  }
  for (const [label, selector] of [
    ["Answer now, without more thinking", ANSWER_NOW],
    ["Regenerate the last answer", "[data-regenerate]"],
    ["Edit your last message", "[data-edit]"],
    ["Copy the last answer", ".answer [data-copy]"],
  ]) {
    if (lastOf(selector)) found.push({ label, act: () => lastOf(selector).click() });
  }
  for (const item of document.querySelectorAll(".menu-item, .rail .rail-link[href]")) {
    found.push({ label: item.textContent.trim(), act: () => item.click() });
  }
  return found;
}

let shown = [];
let at = 0;

function openPalette() {
  sought.value = "";
  list(commands());
  palette.showModal();
}

function list(found) {
  shown = found;
  at = 0;
  options.replaceChildren(...found.map(({ label, hint }, index) => {
    const option = document.createElement("li");
    option.id = `option-${index}`;
    option.setAttribute("role", "option");
    option.append(label);
    if (hint) {
      const small = document.createElement("span");
      small.className = "small faint clip";
      small.append(...shownHit(hint));
      option.append(small);
    }
    option.addEventListener("click", () => run(index));
    return option;
  }));
  mark();
}

// One line of a snippet: from shortly before the first word that was looked for, which is marked.
const BEFORE_HIT = 24;
function shownHit(snippet) {
  const words = sought.value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = snippet.toLowerCase();
  const [start, word] = words.map((word) => [text.indexOf(word), word])
    .filter(([place]) => place >= 0).sort(([a], [b]) => a - b)[0] ?? [0, ""];
  const from = start > BEFORE_HIT ? start - BEFORE_HIT : 0;
  const hit = document.createElement("mark");
  hit.textContent = snippet.slice(start, start + word.length);
  return [(from ? "…" : "") + snippet.slice(from, start), ...(word ? [hit] : []), snippet.slice(start + word.length)];
}

function mark() {
  for (const [index, option] of [...options.children].entries()) {
    option.setAttribute("aria-selected", index === at);
    if (index === at) option.scrollIntoView({ block: "nearest" });
  }
  if (shown.length) sought.setAttribute("aria-activedescendant", `option-${at}`);
  else sought.removeAttribute("aria-activedescendant");
}

function run(index) {
  palette.close();
  shown[index]?.act();
}

// Commands at once, so that Enter never means what was there before; what was said a moment later.
function filter() {
  const words = sought.value.toLowerCase().split(/\s+/).filter(Boolean);
  list(commands().filter(({ label }) => words.every((word) => label.toLowerCase().includes(word))));
  clearTimeout(waiting);
  if (sought.value.trim().length > 1) waiting = setTimeout(search, 120, sought.value, shown);
}

async function search(text, matching) {
  const answer = await fetch(`/api/v1/search?limit=12&together=true&q=${encodeURIComponent(text)}`);
  if (!answer.ok || sought.value !== text) return;
  const hits = (await answer.json()).map(({ conversation, title, message, role, snippet }) => ({
    label: title || "New chat",
    hint: message ? snippet : "",
    act: () => {
      const place = role === "user" ? "question" : "answer";
      location.href = `/chat/${conversation}/${message ? `?message=${message}#${place}-${message}` : ""}`;
    },
  }));
  const kept = at;
  list([...matching, ...hits]);
  at = Math.max(0, Math.min(kept, shown.length - 1));
  mark();
}

let waiting = 0;
sought?.addEventListener("input", filter);
sought?.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && shown.length) {
    event.preventDefault();
    at = (at + step + shown.length) % shown.length;
    mark();
  } else if (event.key === "Enter") {
    event.preventDefault();
    run(at);
  }
});
