// Rows from the model beside the recipe. They stay while one edits: what an edit makes outdated is
// grey, and “Try” sends only the requests that changed.

const editor = document.getElementById("recipe");
const wrap = document.getElementById("preview");
const told = document.getElementById("preview-told");
const hint = document.getElementById("preview-hint");
const problem = document.getElementById("preview-problem");
const prompts = document.getElementById("show-prompts");
const KEPT_SEED = String(Math.floor(Math.random() * 10_000)); // while the field is empty
let current = new Map(); // column: { own, all } of the recipe as it is now
let busy = false;

const bodies = () => [...wrap.querySelectorAll("tbody")];
const heads = () => [...wrap.querySelectorAll("th[data-field]")];
const columnsOf = (row) => JSON.parse(row.dataset.marks ?? "{}");
const isOutdated = (row, column) => current.size > 0 && columnsOf(row)[column]?.all !== current.get(column)?.all;

// The form as it is posted. An empty seed is random for the job, but kept for its preview.
export function formData() {
  const body = new FormData(editor);
  if (!body.get("seed")?.trim()) body.set("seed", KEPT_SEED);
  return body;
}

// --- Try ----------------------------------------------------------------------

// Generates the first rows; returns the answer as a page, or null where none came.
export async function tryRows(count) {
  if (busy) return null;
  busy = true;
  const body = formData();
  body.set("try", String(count));
  body.set("tried", `[${bodies().map((row) => row.dataset.replies.slice(1, -1)).filter(Boolean).join(",")}]`);
  waiting(count, true);
  const answer = await fetch(editor.dataset.preview, { method: "POST", body }).catch(() => null);
  const text = answer ? await answer.text() : "";
  waiting(count, false);
  busy = false;
  if (!answer?.ok) {
    const isPlain = answer?.headers.get("Content-Type")?.startsWith("text/plain");
    fail(isPlain ? text : "Workbench did not respond. Try again.");
    return null;
  }
  const page = new DOMParser().parseFromString(text, "text/html");
  show(page, count);
  return page;
}

function waiting(count, begins) {
  for (const button of document.querySelectorAll("[data-try], #new-rows")) button.disabled = begins;
  wrap.setAttribute("aria-busy", String(begins));
  for (const row of bodies().slice(0, count)) row.classList.toggle("is-written", begins);
  if (begins) told.textContent = `Generating ${count} rows…`;
  document.getElementById("preview-empty").hidden = begins || bodies().length > 0;
}

function fail(sentence) {
  const notice = document.createElement("p");
  notice.className = "notice notice-bad";
  notice.setAttribute("role", "alert");
  notice.textContent = sentence;
  problem.replaceChildren(notice);
  tell("");
}

function show(page, count) {
  problem.replaceChildren(...page.querySelectorAll("#preview-answer > .notice"));
  const table = page.querySelector("table.tries");
  if (!table) return tell("");
  take(page.querySelectorAll("th[data-field]"));
  const marks = JSON.stringify(Object.fromEntries(current));
  const asked = Number(table.dataset.asked);
  for (const row of table.querySelectorAll("tbody")) row.dataset.marks = marks;
  const fields = [...table.querySelectorAll("th")].map((head) => head.dataset.field);
  table.append(...bodies().slice(count).map((row) => realigned(row, fields)));
  wrap.querySelector("table")?.remove();
  wrap.append(table);
  document.getElementById("preview-empty").hidden = true;
  document.getElementById("preview-count").textContent = bodies().length;
  document.getElementById("preview-system").replaceChildren(...page.querySelectorAll(".try-system"));
  for (const id of ["estimate", "estimate-parts"]) {
    const found = page.getElementById(id);
    if (found) document.getElementById(id).replaceWith(found);
  }
  showPrompts();
  paint();
  tell(asked ? `${Math.min(count, bodies().length)} updated` : "nothing to generate again");
}

// A row of an earlier try, in the columns of the newest one.
function realigned(row, fields) {
  const line = row.querySelector("tr");
  const cells = new Map([...line.cells].map((cell) => [cell.dataset.field, cell]));
  if (!line.querySelector(".try-failed")) {
    line.replaceChildren(...fields.map((field) => cells.get(field) ?? Object.assign(document.createElement("td"), { className: "is-missing" })));
  }
  for (const cell of row.querySelectorAll("[colspan]")) cell.colSpan = fields.length;
  return row;
}

const plural = (number) => `${number} row${number === 1 ? "" : "s"}`;

function tell(more) {
  const rows = bodies().length;
  told.textContent = rows ? [plural(rows), more].filter(Boolean).join(", ") : "";
}

// --- While one edits ----------------------------------------------------------

// Notes the marks of the columns as they are now, from the list or the head of an answer.
export function take(elements) {
  const marks = [...elements].map(({ dataset }) => [dataset.column, { own: dataset.own, all: dataset.all }]);
  if (marks.length) current = new Map(marks);
}

export function paint() {
  const outdated = new Set();
  for (const row of bodies()) {
    for (const cell of row.querySelectorAll("td[data-column]")) {
      const old = isOutdated(row, cell.dataset.column);
      cell.classList.toggle("is-outdated", old);
      if (old) outdated.add(cell.dataset.column);
    }
  }
  const seen = new Set();
  for (const head of heads()) {
    const { column } = head.dataset;
    const changed = bodies().some((row) => columnsOf(row)[column]?.own !== current.get(column)?.own);
    head.classList.toggle("is-changed", changed);
    head.querySelector(".badge")?.remove();
    if (changed && !seen.has(column)) head.append(" ", Object.assign(document.createElement("span"), { className: "badge badge-accent", textContent: current.has(column) ? "changed" : "removed" }));
    seen.add(column);
  }
  explain([...outdated].filter((name) => current.has(name)), [...current.keys()].filter((name) => bodies().length && !(name in columnsOf(bodies()[0]))));
}

function explain(outdated, added) {
  const again = [...outdated, ...added];
  hint.hidden = !again.length;
  if (!again.length) return;
  const names = new Intl.ListFormat("en", { type: "conjunction" }).format(again);
  hint.textContent = again.length < current.size ? `Only ${names} ${again.length === 1 ? "is" : "are"} generated again. The other columns keep their values.` : `${names} ${again.length === 1 ? "is" : "are"} generated again.`;
}

export const marksTheChosen = (name) => {
  for (const cell of wrap.querySelectorAll("th[data-column], td[data-column]")) cell.classList.toggle("is-chosen", cell.dataset.column === name);
};

// True if nothing would have to be generated for the estimate of another number of rows.
export const isFresh = () => bodies().length > 0 && hint.hidden && !busy;
export const rowsShown = () => bodies().length;

// --- Hands --------------------------------------------------------------------

function showPrompts() {
  const open = prompts.getAttribute("aria-pressed") === "true";
  for (const detail of wrap.querySelectorAll(".try-detail")) detail.hidden = !open;
}

prompts.addEventListener("click", () => {
  prompts.setAttribute("aria-pressed", String(prompts.getAttribute("aria-pressed") !== "true"));
  showPrompts();
});

// Other values and other answers: with another seed, from nothing.
export function forgetRows() {
  for (const row of bodies()) row.dataset.replies = "[]";
}
