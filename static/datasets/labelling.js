// Labelling one text at a time: 1 to 5 give a label, Enter keeps the current one, S skips, 0 none of
// these, D deletes, Z undoes, / searches. Only Shift+Enter or a click creates a label.

const ACTIONS = { Enter: "keep", s: "skip", 0: "none", d: "delete", z: "undo" };
const form = () => document.getElementById("label-form");

document.addEventListener("keydown", (event) => {
  if (!form() || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.id === "label-filter") return search(event);
  if (event.repeat || event.target.closest("input, textarea, select")) return;
  if (event.key === "/") {
    event.preventDefault();
    openSearch();
  } else if (/^[1-5]$/.test(event.key)) {
    form().querySelector(`.label-bar[data-key="${event.key}"]`)?.click();
  } else if (event.key !== "Enter" || !event.target.closest("button, a, summary")) {
    const action = ACTIONS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (action) document.querySelector(`.label-actions [value="${action}"]`)?.click();
  }
});

document.addEventListener("input", (event) => {
  if (event.target.id === "label-filter") narrow(event.target);
});

// On a phone the search is a sheet: the field has the focus when it opens.
document.addEventListener("toggle", (event) => {
  if (event.target.id === "all-labels" && event.newState === "open") document.getElementById("label-filter").focus();
}, true);

// The next text is read out and the keys work at once.
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.elt.id === "labelling") document.querySelector(".label-text")?.focus({ preventScroll: true });
});

function openSearch() {
  const all = document.getElementById("all-labels");
  if (getComputedStyle(all).display === "none") all.showPopover();
  document.getElementById("label-filter").focus();
}

function search(event) {
  const field = event.target;
  if (event.key === "Escape") {
    field.value = "";
    narrow(field);
    field.blur();
  } else if (event.key === "Enter") {
    event.preventDefault();
    const create = form().querySelector("[data-create]");
    if (event.shiftKey && !create.hidden) create.click();
    else if (!event.shiftKey) form().querySelector(".is-first")?.click();
  }
}

// The best of the labels that hold what was typed is the one that Enter gives.
function narrow(field) {
  const typed = field.value.trim();
  const wanted = typed.toLowerCase();
  const score = (label) => (label === wanted ? 0 : label.startsWith(wanted) ? 1 : label.includes(wanted) ? 2 : 3);
  let best = null;
  let known = false;
  for (const choice of form().querySelectorAll(".label-choices .label-choice")) {
    const found = score(choice.value.toLowerCase());
    choice.parentElement.hidden = Boolean(wanted) && found > 2;
    choice.classList.remove("is-first");
    known ||= choice.value === typed;
    if (wanted && found < 3 && (!best || found < best.found)) best = { choice, found };
  }
  best?.choice.classList.add("is-first");
  const create = form().querySelector("[data-create]");
  create.hidden = !typed || known;
  create.value = typed;
  form().querySelector("[data-unknown]").hidden = create.hidden;
  for (const place of form().querySelectorAll("[data-typed]")) place.textContent = typed;
}
