// The form of a new job: lines that can be added, moved and removed, columns that can be inserted
// into the prompt, and the JSON schema that the fields amount to.

const form = document.getElementById("recipe");
const prompt = document.getElementById("id_prompt");
const chips = document.getElementById("chips");
const schemaView = document.getElementById("schema");

form.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  const line = button?.closest("[data-line]");
  if (button?.dataset.add) add(button.dataset.add);
  else if (button && "remove" in button.dataset) remove(line);
  else if (button?.dataset.move) move(line, button);
  else if (button?.dataset.insert) insert(button.dataset.insert);
  else return;
  follow();
});

form.addEventListener("input", follow);

function add(kind) {
  const line = document.getElementById(`new-${kind}`).content.firstElementChild.cloneNode(true);
  document.getElementById(`${kind}s`).append(line);
  line.querySelector("input").focus();
}

function remove(line) {
  const next = line.nextElementSibling ?? line.previousElementSibling;
  const list = line.parentElement;
  line.remove();
  (next?.querySelector("input") ?? list.parentElement.querySelector("[data-add]")).focus();
}

function move(line, button) {
  if (button.dataset.move === "up") line.previousElementSibling?.before(line);
  else line.nextElementSibling?.after(line);
  button.focus();
}

// Where the cursor is, so that a sentence can be written around it.
function insert(name) {
  prompt.focus();
  prompt.setRangeText(`{{ ${name} }}`, prompt.selectionStart, prompt.selectionEnd, "end");
}

function follow() {
  showChips();
  for (const line of document.querySelectorAll("#fields [data-line]")) {
    const kind = line.querySelector("[name=field_kind]").value;
    // Only what belongs to the kind is shown; what was typed for another one is kept.
    for (const input of line.querySelectorAll("[data-for]")) input.hidden = input.dataset.for !== kind;
  }
  schemaView.textContent = JSON.stringify(schema(), null, 2);
}

function showChips() {
  const names = [...document.querySelectorAll("[name=column_name]")].map((input) => input.value.trim());
  chips.replaceChildren(
    ...names.filter(Boolean).map((name) => {
      const chip = document.createElement("button");
      chip.type = "button";
      chip.className = "button button-small chip";
      chip.dataset.insert = name;
      chip.textContent = `{{ ${name} }}`;
      chip.title = "Insert into the prompt";
      return chip;
    }),
  );
}

function schema() {
  const properties = {};
  const required = [];
  for (const line of document.querySelectorAll("#fields [data-line]")) {
    const value = (part) => line.querySelector(`[name=field_${part}]`).value.trim();
    if (!value("name")) continue;
    properties[value("name")] = property(value("kind"), value("limit"), value("values"));
    if (value("required") === "yes") required.push(value("name"));
  }
  return { type: "object", required, properties };
}

function property(kind, limit, values) {
  if (kind === "enum") return { type: "string", enum: split(values) };
  if (kind === "list") return { type: "array", items: { type: "string" }, maxItems: 10 };
  if (kind === "string" && /^\d+$/.test(limit)) return { type: "string", maxLength: Number(limit) };
  return { type: kind };
}

// As the server splits them: one a line, or by commas where there is one line.
function split(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  const parts = lines.length > 1 ? lines : text.split(",");
  return [...new Set(parts.map((part) => part.trim()).filter(Boolean))];
}

follow();
