// The states of the rows: writing, waiting, new answer. Nothing is asked while nothing happens.
//
// While an answer is being written anywhere the page asks every few seconds. Other tabs tell this
// one when they start or end an answer, and who comes back to a tab sees what is true now.

const links = document.getElementById("chat-links");
const tabs = new BroadcastChannel("chat-states");
const ASK_MS = 2500;
const open = links?.querySelector("[aria-current]")?.closest("[data-row]")?.dataset.row
  ?? /\/chat\/(\d+)\//.exec(location.pathname)?.[1];
let timer = 0;
let live = 0;

async function refresh() {
  clearTimeout(timer);
  timer = 0;
  if (!links || document.hidden) return;
  const shown = [...links.querySelectorAll("[data-row]")].map((row) => row.dataset.row);
  const answer = await fetch(`${links.dataset.states}?shown=${shown}`).catch(() => null);
  if (!answer?.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const state of page.querySelectorAll(".row-state")) put(state);
  const { dataset } = page.body.firstElementChild;
  for (const dot of document.querySelectorAll("[data-mark='chat:index']")) dot.hidden = !("attention" in dataset);
  if ("writing" in dataset && !timer) timer = setTimeout(refresh, ASK_MS);
}

function put(state) {
  const old = document.getElementById(state.id);
  if (old && old.dataset.state !== state.dataset.state) old.replaceWith(document.importNode(state, true));
}

const isWriting = () => Boolean(links?.querySelector("[data-state=writing], [data-state=allow]"));

// What this page shows is read: what it showed while it was hidden, once it is seen.
let isUnread = false;
async function markRead() {
  if (!isUnread || !open || document.hidden) return;
  isUnread = false;
  const headers = JSON.parse(document.body.getAttribute("hx-headers"));
  await fetch(`/chat/${open}/read/`, { method: "POST", headers }).catch(() => null);
}

// The page of a chat tells how many of its answers are being written.
document.addEventListener("chat:answering", async ({ detail: { count } }) => {
  if (count === live) return;
  isUnread ||= count < live;
  live = count;
  await markRead();
  refresh();
  tabs.postMessage(live);
});
tabs.addEventListener("message", refresh);
document.addEventListener("visibilitychange", async () => {
  await markRead();
  refresh();
});
if (isWriting()) timer = setTimeout(refresh, ASK_MS);
