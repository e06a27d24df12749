// The palette (Ctrl+K): chats that have the words, then commands. Commands are what the page has:
// its links, the menu of the open chat, the places of the workbench.

const palette = document.getElementById("palette");
const sought = palette?.querySelector("input");
const options = palette?.querySelector("[role=listbox]");

const click = (selector) => document.querySelector(selector)?.click();
const lastOf = (selector) => [...document.querySelectorAll(selector)].at(-1);

const COMMANDS = [
  ["New chat", ".chat-new"],
  ["Temporary chat", "[data-temporary]"],
  ["Keep this chat", "[data-keep]"],
  ["Chat settings", "[data-panel-toggle]"],
  ["Answer now, without more thinking", "[data-answer-now]:not([hidden])"],
  ["Regenerate the last answer", "[data-regenerate]"],
  ["Edit your last message", "[data-edit]"],
  ["Copy the last answer", ".answer [data-copy]"],
];

function commands() {
  const found = COMMANDS.filter(([, selector]) => lastOf(selector))
    .map(([label, selector]) => ({ label, act: () => lastOf(selector).click() }));
  found.push({ label: "Keyboard shortcuts", act: () => document.getElementById("keys").showModal() });
  // Of the menus the innermost actions: "Export: Markdown" rather than "Export".
  for (const item of document.querySelectorAll(".chat-head .menu-item:not(summary)")) {
    const of = item.closest(".menu-part")?.querySelector("summary").textContent.trim();
    const name = (item.querySelector("span") ?? item).textContent.trim();
    found.push({ label: of ? `${of}: ${name}` : name, hint: "This chat", act: () => item.click() });
  }
  for (const item of document.querySelectorAll(".rail .rail-link[href]")) {
    found.push({ label: item.textContent.trim(), hint: "Go to", act: () => item.click() });
  }
  return found;
}

let shown = []; // option elements
let at = 0;
let waiting = 0;

export function openPalette() {
  sought.value = "";
  list([], commands());
  palette.showModal();
}

// Chats first, as the server rendered them; then commands.
function list(hits, found) {
  const items = found.map(({ label, hint, act }) => {
    const option = document.createElement("li");
    option.setAttribute("role", "option");
    option.className = "palette-command";
    option.append(label);
    if (hint) option.append(Object.assign(document.createElement("span"), { className: "small faint", textContent: hint }));
    option.addEventListener("click", () => run(act));
    return option;
  });
  for (const hit of hits) {
    if (hit.dataset.href) hit.addEventListener("click", () => run(() => { location.href = hit.dataset.href; }));
  }
  options.replaceChildren(...hits, ...items);
  shown = [...options.querySelectorAll("[role=option]")];
  for (const [index, option] of shown.entries()) option.id = `option-${index}`;
  at = 0;
  mark();
}

function mark() {
  for (const [index, option] of shown.entries()) {
    option.setAttribute("aria-selected", index === at);
    if (index === at) option.scrollIntoView({ block: "nearest" });
  }
  if (shown.length) sought.setAttribute("aria-activedescendant", `option-${at}`);
  else sought.removeAttribute("aria-activedescendant");
}

function run(act) {
  palette.close();
  act();
}

// Commands at once, so that Enter never means what was there before; chats a moment later.
function filter() {
  const words = sought.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = commands().filter(({ label }) => words.every((word) => label.toLowerCase().includes(word)));
  list([], found);
  clearTimeout(waiting);
  if (sought.value.trim().length > 1) waiting = setTimeout(search, 120, sought.value, found);
}

async function search(text, found) {
  const answer = await fetch(`${palette.dataset.search}?q=${encodeURIComponent(text)}`).catch(() => null);
  if (!answer?.ok || sought.value !== text) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  // What Enter means does not change under the finger: a command that was marked stays so.
  const kept = found.length ? at : -1;
  list([...page.body.children].map((hit) => document.importNode(hit, true)), found);
  if (kept >= 0) at = shown.length - found.length + kept;
  mark();
}

sought?.addEventListener("input", filter);
sought?.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && shown.length) {
    event.preventDefault();
    at = (at + step + shown.length) % shown.length;
    mark();
  } else if (event.key === "Enter") {
    event.preventDefault();
    shown[at]?.click();
  }
});
palette?.addEventListener("click", ({ target }) => target === palette && palette.close());
document.addEventListener("click", ({ target }) => target.closest("[data-palette]") && openPalette());

export { click, lastOf };
