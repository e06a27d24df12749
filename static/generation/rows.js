// Rows of a job by keyboard: arrows or J and K move, X selects, Enter opens, V reviews.

const part = () => document.getElementById("rows");
const rows = () => [...(part()?.querySelectorAll("[data-row]") ?? [])];
const current = () => document.activeElement.closest?.("[data-row]");
const isWriting = ({ target }) => target.matches("input:not([type=checkbox]), textarea, select");

function move(step) {
  const all = rows();
  const at = all.indexOf(current());
  const next = all[at < 0 ? 0 : at + step];
  if (!next) return;
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

function toggle(row) {
  const box = row?.querySelector("[name=index]");
  if (!box) return;
  box.checked = !box.checked;
  count();
}

// How many are chosen, beside what can be done with them.
function count() {
  const boxes = rows().map((row) => row.querySelector("[name=index]"));
  const chosen = boxes.filter((box) => box.checked).length;
  const said = document.getElementById("rows-chosen");
  if (said) said.textContent = `${chosen} row${chosen === 1 ? "" : "s"} selected`;
  const all = document.getElementById("check-all");
  if (!all) return;
  all.checked = chosen > 0 && chosen === boxes.length;
  all.indeterminate = chosen > 0 && chosen < boxes.length;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event)) return;
  const acts = {
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => current() && move(1),
    ArrowUp: () => current() && move(-1),
    x: () => toggle(current()),
    Enter: () => event.target.matches("[data-row]") && event.target.querySelector("a").click(),
    v: () => document.getElementById("review-rows")?.click(),
    "/": () => document.getElementById("rows-search")?.focus(),
    Escape: () => clear(),
  };
  const act = acts[event.key];
  if (!act) return;
  const isArrow = event.key.startsWith("Arrow");
  if ((isArrow && !current()) || event.key === "Enter" || event.key === "Escape") return void act();
  event.preventDefault();
  act();
});

function clear() {
  for (const row of rows()) row.querySelector("[name=index]").checked = false;
  count();
}

document.addEventListener("change", ({ target }) => {
  if (target.id === "check-all") {
    for (const row of rows()) row.querySelector("[name=index]").checked = target.checked;
  }
  if (target.id === "check-all" || target.name === "index") count();
});

// A menu closes when somebody clicks beside it.
document.addEventListener("click", ({ target }) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(target)) menu.open = false;
  }
});

// What is typed stays where it is: the table comes back, the field keeps the focus.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.target.id !== "rows") return;
  const field = document.activeElement;
  if (field.id !== "rows-search") return;
  const { selectionStart: start, value } = field;
  document.addEventListener("htmx:afterSettle", () => {
    const found = document.getElementById("rows-search");
    if (!found) return;
    found.value = value;
    found.focus();
    found.setSelectionRange(start, start);
  }, { once: true });
});
