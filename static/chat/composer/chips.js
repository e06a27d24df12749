// The chips of the composer: each opens a menu above it, Backspace clears it.
//
// A choice is sent to the server, which renders the chips anew.

const menu = document.getElementById("composer-menu");
const content = menu?.querySelector("[data-menu-content]");
const GAP = 6; // between a chip and its menu, in pixels
const EDGE = 8; // at least this far from the window's edges
const LOW = 320; // a menu needs this height above its chip, else it opens below

let opened = ""; // name of the chip whose menu is open
let several = false; // the next model is added

const chipOf = (name) => document.querySelector(`[data-chip="${name}"]`);

export function place(popover, anchor) {
  const { left, top, bottom } = anchor.getBoundingClientRect();
  const { right } = anchor.closest(".composer").getBoundingClientRect();
  const above = top - GAP - EDGE;
  const opensBelow = above < LOW && innerHeight - bottom > above;
  const room = opensBelow ? innerHeight - bottom - GAP - EDGE : above;
  popover.style.maxHeight = `${Math.min(room, 480)}px`;
  popover.style.left = `${Math.max(EDGE, Math.min(left, Math.min(right, innerWidth - EDGE) - popover.offsetWidth))}px`;
  popover.style.top = opensBelow ? `${bottom + GAP}px` : "auto";
  popover.style.bottom = opensBelow ? "auto" : `${innerHeight - top + GAP}px`;
}

async function open(chip) {
  const name = chip.dataset.chip;
  several = false;
  document.getElementById("menu-error").replaceChildren();
  await htmx.ajax("GET", chip.dataset.menu, { target: content, swap: "innerHTML" });
  opened = name;
  menu.dataset.name = name;
  menu.setAttribute("aria-label", chip.textContent.trim().replace(/\s+/g, " "));
  if (!menu.matches(":popover-open")) menu.showPopover();
  place(menu, chipOf(name));
  chipOf(name).setAttribute("aria-expanded", "true");
  content.querySelector("[autofocus], [aria-pressed=true], button, input")?.focus();
}

// Without a value it is cleared. `name` is of the change: a menu may make more than its chip's.
export async function change(name, value, address = chipOf("model").dataset.change) {
  const url = address.replace(/[^/]+\/$/, `${name}/`);
  await htmx.ajax("POST", url, { target: "#composer-chips", swap: "outerHTML", values: { value } });
  chipOf(opened)?.setAttribute("aria-expanded", String(menu.matches(":popover-open")));
  document.dispatchEvent(new CustomEvent("chat:settings-changed"));
}

function close() {
  const name = opened;
  menu.hidePopover();
  chipOf(name)?.focus();
}

async function choose(row, adds) {
  if (opened === "model" && adds) {
    await change("other-model", row.dataset.value);
    return reopen();
  }
  const name = opened;
  close();
  await change(name, row.dataset.value);
  chipOf(name)?.focus();
}

async function reopen() {
  const filter = content.querySelector("[data-menu-filter]")?.value ?? "";
  await open(chipOf(opened));
  const field = content.querySelector("[data-menu-filter]");
  if (!field || !filter) return;
  field.value = filter;
  narrow(field);
}

function narrow(field) {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const line of content.querySelectorAll("[data-menu-line]")) {
    const text = line.querySelector("[data-words]").dataset.words.toLowerCase();
    line.hidden = !words.every((word) => text.includes(word));
    shown += !line.hidden;
  }
  for (const group of content.querySelectorAll(".menu-group")) {
    group.hidden = !group.querySelector("[data-menu-line]:not([hidden])");
  }
  content.querySelector("[data-menu-none]").hidden = shown > 0;
}

const rows = () => [...content.querySelectorAll(".menu-row:not(:disabled), .menu-row input")]
  .filter((row) => row.matches("button, a, input") && row.checkVisibility());

function step(by) {
  const found = rows();
  const at = found.indexOf(document.activeElement);
  const field = content.querySelector("[data-menu-filter]");
  if (at === 0 && by < 0 && field) return field.focus();
  found.at((Math.max(at, by > 0 ? -1 : 0) + by) % found.length)?.focus();
}

menu?.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const isFilter = event.target.matches("[data-menu-filter]");
  if (by && (isFilter || event.target.closest(".menu-row"))) {
    event.preventDefault();
    step(by);
  } else if (event.key === "Enter" && (isFilter || event.target.matches("[data-value].menu-row"))) {
    const row = isFilter ? rows()[0] : event.target;
    event.preventDefault();
    if (row?.dataset.value !== undefined) choose(row, event.shiftKey || several);
  }
});

menu?.addEventListener("input", ({ target }) => target.matches("[data-menu-filter]") && narrow(target));

menu?.addEventListener("click", async (event) => {
  const star = event.target.closest("[data-favourite]");
  const row = event.target.closest("[data-value].menu-row");
  const more = event.target.closest("[data-several]");
  if (star) {
    await htmx.ajax("POST", star.dataset.favourite, { target: content, swap: "innerHTML", values: { value: star.dataset.value } });
    content.querySelector(`[data-favourite][data-value="${CSS.escape(star.dataset.value)}"]`)?.focus();
  } else if (row) {
    choose(row, event.shiftKey || several);
  } else if (more) {
    several = !several;
    more.setAttribute("aria-pressed", String(several));
  }
});

// Tools are chosen one after the other, with the menu open.
menu?.addEventListener("change", ({ target }) => {
  if (!target.closest("[data-several-values]")) return;
  change("tools", [...content.querySelectorAll("input:checked")].map((box) => box.value));
});

menu?.addEventListener("submit", async (event) => {
  const form = event.target.closest("[data-change-form]");
  event.preventDefault();
  if (!form) return;
  await change("save-preset", form.elements.value.value);
  if (!document.getElementById("menu-error").hasChildNodes()) close();
});

menu?.addEventListener("schema-changed", (event) => {
  event.stopPropagation();
  change("json", event.target.elements.schema.value);
});

menu?.addEventListener("toggle", ({ newState }) => {
  if (newState === "open") return;
  chipOf(opened)?.setAttribute("aria-expanded", "false");
  content.replaceChildren();
});

document.addEventListener("click", ({ target }) => {
  const chip = target.closest?.("[data-chip]");
  if (chip) open(chip);
});

document.addEventListener("keydown", async (event) => {
  const chip = event.target.closest?.("[data-chip]");
  if (!chip || !["Backspace", "Delete"].includes(event.key)) return;
  event.preventDefault();
  const name = chip.dataset.chip;
  await change(name, name === "tools" ? [] : "");
  chipOf(name)?.focus();
});

// A plus beside the chips has a menu that the page brings along.
document.getElementById("composer-add")?.addEventListener("toggle", ({ target, newState }) => {
  const button = document.querySelector("[data-anchor=composer-add]");
  if (newState === "open") place(target, button);
  button.setAttribute("aria-expanded", String(newState === "open"));
});

// What changes elsewhere: in the panel, or the slots while an answer was written.
function refresh() {
  const line = document.querySelector("[data-server-line]");
  if (!line || menu.matches(":popover-open")) return;
  const focused = document.activeElement.dataset?.chip;
  htmx.ajax("GET", line.dataset.serverLine, { target: "#composer-chips", swap: "outerHTML" })
    .then(() => focused && chipOf(focused)?.focus());
}

document.addEventListener("htmx:afterRequest", ({ target, detail }) => {
  if (detail.successful && detail.requestConfig.verb === "post" && target.closest?.("#settings")) refresh();
});
let busy = 0;
document.addEventListener("chat:answering", ({ detail }) => {
  if (busy !== detail.count) refresh();
  busy = detail.count;
});
document.addEventListener("visibilitychange", () => document.hidden || refresh());
