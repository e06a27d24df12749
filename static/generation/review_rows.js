// The rows under review: fetched before they are needed, decided one after the other.

const AHEAD = 2;
const html = new Map(); // index -> promise of its fragment
let sent = Promise.resolve(); // decisions arrive in the order in which they were made

const root = () => document.getElementById("review");
const fragment = { "HX-Request": "true" };

export const queue = () => root().dataset.queue.split(",").filter(Boolean).map(Number);

async function read(address, options = {}) {
  const answer = await fetch(address, options);
  if (!answer.ok) throw new Error(`Workbench returned an error (${answer.status}). Try again, or see the log.`);
  return answer.text();
}

// A row as the server shows it. One that is fetched already is there at once.
export function row(index) {
  if (!html.has(index)) {
    const found = read(`${root().dataset.row}&at=${index}`, { headers: fragment });
    found.catch(() => html.delete(index));
    html.set(index, found);
  }
  return html.get(index);
}

export function forget(index) {
  html.delete(index);
}

export function fetchAhead(indices, place) {
  for (const index of indices.slice(place + 1, place + 1 + AHEAD)) row(index).catch(() => {});
}

// Nobody leaves before the last decision has arrived.
window.addEventListener("beforeunload", (event) => {
  if (root().dataset.pending !== "0") event.preventDefault();
});

// Sends a decision when those before it have arrived; what became of the row.
export function decide(index, fields) {
  const address = root().dataset.judge.replace(/0\/$/, `${index}/`);
  const status = new URLSearchParams(root().dataset.row.split("?")[1]).get("status") ?? "";
  const body = new URLSearchParams([["status", status], ...fields]);
  const headers = { ...fragment, "X-CSRFToken": JSON.parse(document.body.getAttribute("hx-headers"))["X-CSRFToken"] };
  const answer = sent.then(() => read(address, { method: "POST", body, headers })).then((text) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    return { ...page.getElementById("judged").dataset };
  });
  const count = (step) => { root().dataset.pending = Number(root().dataset.pending) + step; };
  count(1);
  sent = answer.catch(() => {}).finally(() => count(-1));
  forget(index);
  return answer;
}
