// Fields of structured output, in the settings panel: each change is saved soon after.

import { fieldsOf, follow, fromText, pressed, readFields, renderFields } from "../../core/forms/schema_fields.js";

const PAUSE_MS = 500;
let waiting = 0;

function show() {
  const form = document.querySelector("[data-answer-fields]:not([data-shown])");
  if (!form) return;
  form.dataset.shown = "";
  renderFields(fieldsOf(form.querySelector("[data-schema]")), JSON.parse(form.elements.schema.value));
}

function changed(form) {
  form.elements.schema.value = JSON.stringify(readFields(fieldsOf(form.querySelector("[data-schema]"))));
  clearTimeout(waiting);
  waiting = setTimeout(() => htmx.trigger(form, "schema-changed"), PAUSE_MS);
}

document.addEventListener("input", ({ target }) => {
  const form = target.closest?.("[data-answer-fields]");
  if (!form) return;
  if (target.closest("[data-schema-view]") && !fromText(target)) return;
  const line = target.closest("[data-line]");
  if (line && target.dataset.part) follow(line);
  changed(form);
});

document.addEventListener("click", ({ target }) => {
  const button = target.closest?.("[data-answer-fields] button[type=button]");
  if (button && pressed(button) && !("schemaText" in button.dataset)) changed(button.form);
});

document.addEventListener("htmx:afterSettle", show);
show();
