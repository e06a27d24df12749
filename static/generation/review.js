// Reviewing: one key per decision. The next row is shown while the decision is under way.

import { decide, fetchAhead, forget, queue, row } from "./review_rows.js";

const KEYS = { a: accept, r: reject, z: undo, e: edit, ArrowRight: () => go(1), ArrowLeft: () => go(-1) };
const SWIPE = 90; // pixels
const byId = (id) => document.getElementById(id);
const stage = byId("review-stage");
const total = Number(byId("review").dataset.total);
const start = Number(byId("review").dataset.place);
const rows = queue();
const done = []; // what can be undone: the row, its place, the promise of a token
let place = 0;

const shown = () => stage.querySelector(".review-row");
const isEditing = () => Boolean(shown()?.querySelector(".review-edit:not([hidden])"));
const label = (index) => `Row ${(index + 1).toLocaleString("en")}`;

async function show(at, wanted = rows[at]) {
  place = at;
  if (wanted === undefined) return end();
  const text = await row(wanted).catch((error) => void fail(error.message));
  if (text === undefined || place !== at) return;
  stage.innerHTML = text;
  update();
  fetchAhead(rows, place);
}

function end() {
  // More rows than the page knew of: it starts again behind them.
  if (rows.length && start + rows.length < total && !location.search.includes(`at=${rows.at(-1)}`)) {
    const address = new URL(byId("review").dataset.row, location.href);
    return void location.assign(address);
  }
  stage.replaceChildren(byId("review-end").content.cloneNode(true));
  update();
}

function update() {
  const found = shown();
  byId("review-progress").value = start + place;
  if (found) byId("review-place").textContent = `${(start + place + 1).toLocaleString("en")} of ${total.toLocaleString("en")}`;
  byId("do-accept").disabled = !found?.dataset.accept;
  byId("do-reject").disabled = found?.dataset.status !== "accepted";
  byId("accept-word").textContent = found?.dataset.status === "rejected" ? "Restore" : "Accept";
  byId("do-undo").disabled = done.length === 0;
  byId("go-before").disabled = place === 0;
  byId("go-next").disabled = !found;
}

function say(text) {
  byId("review-last").textContent = text;
}

function fail(text) {
  const problem = byId("review-problem");
  if (!problem) return say(text);
  problem.textContent = text;
  problem.hidden = false;
}

function accept() {
  if (!byId("do-accept").disabled) judge("accept", "accepted");
}

function reject() {
  if (!byId("do-reject").disabled) judge("reject", "rejected");
}

// Goes on at once. If the server refuses, the row comes back with the reason.
function judge(action, word) {
  const index = Number(shown().dataset.index);
  const at = place;
  send(index, at, [["action", action]], word);
  show(at + 1);
}

async function send(index, at, fields, word) {
  const answer = decide(index, fields);
  const step = { index, at, token: answer.then(({ undo: token }) => token, () => "") };
  done.push(step);
  say(`${label(index)} ${word}`);
  byId("do-undo").disabled = false;
  const problem = await answer.then((found) => found.problem, (error) => error.message);
  if (!problem) return true;
  done.splice(done.indexOf(step), 1);
  say("");
  await show(at, index);
  fail(problem);
  return false;
}

async function undo() {
  const step = done.pop();
  if (!step) return;
  byId("do-undo").disabled = done.length === 0;
  say(`${label(step.index)} restored`);
  const token = await step.token;
  const problem = token
    ? await decide(step.index, [["action", "undo"], ["before", token]]).then((found) => found.problem, (error) => error.message)
    : "";
  forget(rows[place]);
  await show(step.at, rows[step.at]);
  if (problem) fail(problem);
}

function go(step) {
  if (isEditing() || (step < 0 && place === 0) || (step > 0 && !shown())) return;
  show(place + step);
}

function edit() {
  const form = shown()?.querySelector(".review-edit");
  if (!form) return;
  form.hidden = false;
  shown().querySelector(".review-read").hidden = true;
  byId("do-edit").setAttribute("aria-expanded", "true");
  const field = form.querySelector("[data-written]") ?? form.querySelector("textarea");
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
}

function leave() {
  const form = shown()?.querySelector(".review-edit");
  if (!form) return;
  form.hidden = true;
  shown().querySelector(".review-read").hidden = false;
  const button = byId("do-edit");
  button.setAttribute("aria-expanded", "false");
  button.focus();
}

// Saves what was changed. With Ctrl+Enter the row is accepted as well, and the next one is shown.
async function save(goesOn) {
  const index = Number(shown().dataset.index);
  const at = place;
  const fields = [...shown().querySelectorAll(".review-edit textarea")].map(({ name, value }) => [name, value]);
  const answer = await decide(index, [["action", "edit"], ...fields]).catch((error) => ({ problem: error.message }));
  if (answer.problem) return fail(answer.problem);
  say(`${label(index)} saved`);
  if (goesOn && answer.status === "rejected") return void judge("accept", "accepted");
  await show(goesOn ? at + 1 : at);
}

document.addEventListener("keydown", (event) => {
  const writing = event.target.matches("input, textarea, select");
  if (isEditing() && event.key === "Escape") return leave();
  if (isEditing() && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    return void save(true);
  }
  if (writing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

document.addEventListener("click", (event) => {
  const near = event.target.closest("[data-reject]");
  if (near) return void rejectNear(near);
  const acts = { "do-undo": undo, "do-edit": edit, "do-cancel": leave, "go-next": () => go(1), "go-before": () => go(-1) };
  acts[event.target.closest("button")?.id]?.();
});

async function rejectNear(button) {
  const index = Number(button.dataset.reject);
  button.disabled = true;
  const at = place;
  if (await send(index, at, [["action", "reject"]], "rejected")) {
    forget(rows[at]);
    if (place === at) show(at);
  }
}

document.addEventListener("submit", (event) => {
  if (event.target.id !== "review-form") return;
  event.preventDefault();
  ({ accept, reject, edit: () => save(false) })[event.submitter?.value ?? "edit"]?.();
});

// A swipe to the right accepts, to the left rejects.
let from = null;
stage.addEventListener("touchstart", ({ touches }) => {
  from = touches.length === 1 ? { x: touches[0].clientX, y: touches[0].clientY } : null;
}, { passive: true });
stage.addEventListener("touchend", ({ changedTouches: [end] }) => {
  if (!from || isEditing()) return;
  const [x, y] = [end.clientX - from.x, end.clientY - from.y];
  from = null;
  if (Math.abs(x) < SWIPE || Math.abs(x) < 2 * Math.abs(y)) return;
  if (x > 0) accept();
  else reject();
}, { passive: true });

update();
fetchAhead(rows, place);
