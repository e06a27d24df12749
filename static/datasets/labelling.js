// Labelling one text at a time: 1 to 9 set a label, Enter keeps the current one, s skips, u undoes,
// / searches the labels. A new label needs a choice of its own, so that a typo creates none.

document.addEventListener("keydown", (event) => {
  const page = document.getElementById("labelling");
  if (!page || event.ctrlKey || event.metaKey || event.altKey) return;
  const filter = page.querySelector("#label-filter");
  if (event.target === filter) return typed(event, page, filter);
  if (event.target.closest("input, textarea, select")) return;
  if (event.key === "/") {
    event.preventDefault();
    filter?.focus();
  } else if (/^[1-9]$/.test(event.key)) {
    const choice = page.querySelector(`[data-key="${event.key}"]`);
    if (choice) give(page, choice.dataset.label);
  } else if (event.key === "Enter" && !event.target.closest("button, a")) press(page, "keep");
  else if (event.key === "s") press(page, "skip");
  else if (event.key === "u") press(page, "undo");
});

document.addEventListener("click", (event) => {
  const choice = event.target.closest(".choice");
  if (choice) give(document.getElementById("labelling"), choice.dataset.label);
});

document.addEventListener("input", (event) => {
  if (event.target.id === "label-filter") narrow(event.target);
});

// The next text is read out and the keys work at once.
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.elt.id === "labelling") {
    document.querySelector(".label-text")?.focus({ preventScroll: true });
  }
});

function typed(event, page, filter) {
  if (event.key === "Escape") {
    filter.value = "";
    narrow(filter);
    filter.blur();
  } else if (event.key === "Enter") {
    event.preventDefault();
    const wanted = filter.value.trim();
    if (!wanted) return;
    const first = page.querySelector(".choice-first");
    if (first) give(page, first.dataset.label);
    else page.querySelector("[data-create] button").focus(); // Enter again creates it
  }
}

// The first of the labels that hold what was typed is the one Enter gives.
function narrow(filter) {
  const wanted = filter.value.trim().toLowerCase();
  const list = filter.closest(".choices");
  const choices = [...list.querySelectorAll("li:not([data-create]) .choice")];
  const score = (choice) => {
    const label = choice.dataset.label.toLowerCase();
    return label === wanted ? 0 : label.startsWith(wanted) ? 1 : label.includes(wanted) ? 2 : 3;
  };
  let first = null;
  for (const choice of choices) {
    const found = !wanted || score(choice) < 3;
    choice.parentElement.hidden = !found;
    choice.classList.remove("choice-first");
    if (wanted && found && (!first || score(choice) < score(first))) first = choice;
  }
  first?.classList.add("choice-first");
  const create = list.querySelector("[data-create]");
  const typed = filter.value.trim();
  create.hidden = !typed || choices.some((choice) => choice.dataset.label === typed);
  create.querySelector("button").dataset.label = typed;
  create.querySelector("[data-create-name]").textContent = typed;
}

function give(page, label) {
  const form = page.querySelector(".label-card");
  form.elements.label.value = label;
  form.querySelector("[data-give]").click(); // htmx sends the button that was clicked
}

function press(page, action) {
  const button = page.querySelector(`.label-card [value="${action}"]`);
  if (button && !button.disabled) button.click();
}
