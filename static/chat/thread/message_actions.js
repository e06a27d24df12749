// Actions on a message: copy, edit, undo delete.

import { copyFrom } from "../../core/clipboard.js";

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copyFrom(button, textOf(button.dataset.copy));
});

// Of a question what the page shows; of an answer what the model wrote, not how it looks.
async function textOf(source) {
  if (!source.startsWith("/")) return document.querySelector(source).textContent;
  const answer = await fetch(source);
  if (!answer.ok) throw new Error(answer.status);
  return (await answer.json()).content;
}

document.addEventListener("click", ({ target }) => {
  if (target.closest("[data-dismiss]")) target.closest("form").remove();
});

document.addEventListener("keydown", (event) => {
  const form = event.target.closest?.("[data-edit-form]");
  if (!form) return;
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    form.requestSubmit();
  } else if (event.key === "Escape") {
    event.stopPropagation();
    form.querySelector("[data-cancel]").click();
  }
}, true);

document.addEventListener("htmx:afterSwap", ({ detail }) => {
  const field = detail.elt?.querySelector?.("[data-edit-form] textarea");
  if (!field) return;
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
});
