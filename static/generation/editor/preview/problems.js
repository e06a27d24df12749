// What the server says about the recipe, each sentence at its field. After “Start” and “Try” the
// first wrong field is opened, scrolled to and focused.

import { choose, chosenForm, draw } from "../columns/column_list.js";
import { forms } from "../columns/column_forms.js";

const list = document.getElementById("problems");
const UNKNOWN = /no column “(.+?)”\. Did you mean “(.+?)”/;

// Takes problems and sentences out of an answer.
export function take(page, { everything = false } = {}) {
  const said = page.getElementById("problems");
  if (said) list.replaceChildren(...said.children);
  for (const sentence of page.querySelectorAll("p.error[id]")) {
    const place = document.getElementById(sentence.id);
    // A field nobody has touched yet is not called empty.
    if (place && (everything || place.textContent || place.closest("[data-touched]"))) place.textContent = sentence.textContent.trim();
    if (place) fieldOf(place)?.setAttribute("aria-invalid", String(Boolean(place.textContent)));
  }
  show({ everything });
}

const fieldOf = (place) => document.getElementById(place.id.replace("error-", "id_"));

export function show({ everything = false } = {}) {
  const said = new Map();
  for (const problem of list.children) {
    const [, index, ...rest] = problem.dataset.place.split(".");
    said.set(Number(index), [...(said.get(Number(index)) ?? []), [rest.join("."), problem.textContent.trim()]]);
  }
  forms().forEach((found, index) => {
    const shown = everything || "touched" in found.dataset || "bad" in found.dataset;
    const problems = shown ? said.get(index) ?? [] : [];
    for (const place of found.querySelectorAll("[data-problem], [data-error]")) place.textContent = "";
    for (const field of found.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
    for (const [key, sentence] of problems) write(found, key, sentence);
    found.toggleAttribute("data-bad", problems.length > 0);
  });
  draw();
}

// At the field with the longest fitting key: `checks.2` belongs to the rules; else at the top.
function write(found, key, sentence) {
  let place = null;
  for (let steps = key.split("."); steps[0] && !place; steps.pop()) place = found.querySelector(`[data-error="${steps.join(".")}"]`) ?? ownPlace(found, steps.join("."));
  place ??= found.querySelector("[data-problem]");
  place.append(place.textContent ? ` ${sentence}` : sentence);
  const field = place.closest(".field")?.querySelector("[data-key]");
  field?.setAttribute("aria-invalid", "true");
  const names = sentence.match(UNKNOWN);
  if (names && field) place.append(" ", fix(names[1], names[2], field));
}

// Fields without a place of their own get one.
function ownPlace(found, key) {
  const field = found.querySelector(`[data-key="${key}"]`)?.closest(".field");
  if (!field) return null;
  const place = document.createElement("p");
  place.className = "error";
  place.dataset.error = key;
  field.append(place);
  return place;
}

function fix(wrong, right, field) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button-link";
  button.textContent = `Use “${right}”`;
  button.addEventListener("click", () => {
    field.value = field.value.replaceAll(new RegExp(`\\b${wrong}\\b`, "g"), right);
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.focus();
  });
  return button;
}

// --- The first one ------------------------------------------------------------

// Opens and focuses the first wrong field; false if there is none.
export function goToFirst() {
  const wrong = document.querySelector(".editor-head .error:not(:empty)") ?? firstOfColumns() ?? document.querySelector("[data-settings] .error:not(:empty), .pane-columns .error:not(:empty)");
  if (!wrong) return false;
  const group = wrong.closest("[data-settings]");
  const found = wrong.closest("[data-column]");
  if (group && group.hidden) choose(group.dataset.settings);
  if (found && found !== chosenForm()) choose(found);
  for (let around = wrong.closest("details"); around; around = around.parentElement.closest("details")) around.open = true;
  document.getElementById("recipe").dispatchEvent(new CustomEvent("segment", { detail: wrong.closest(".pane-columns") ? "columns" : "form" }));
  const field = (wrong.id && fieldOf(wrong)) || wrong.closest(".field")?.querySelector("[data-key]") || found?.querySelector("[data-name]");
  (field ?? wrong).scrollIntoView({ block: "center" });
  field?.focus({ preventScroll: true });
  return true;
}

function firstOfColumns() {
  const found = forms().find((one) => "bad" in one.dataset);
  return found?.querySelector(".error:not(:empty)");
}
