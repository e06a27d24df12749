// Sends the draft while it is typed, so that the model server can process the prompt early.

const GROWN = 40; // characters worth telling at once
const PAUSE_MS = 600; // a pause in typing
const GAP_MS = 1500; // between two tellings

const form = document.querySelector("[data-ahead-url]");
const input = form?.querySelector("textarea");
let told = null; // the draft last told
let toldAt = -Infinity;
let timer = 0;

function tell() {
  clearTimeout(timer);
  const wait = toldAt + GAP_MS - performance.now();
  if (wait > 0) {
    timer = setTimeout(tell, wait);
    return;
  }
  const draft = input.value;
  const answering = !form.querySelector("[data-stop]").hidden;
  if (draft === told || answering || document.hidden) return;
  told = draft;
  toldAt = performance.now();
  const headers = JSON.parse(document.body.getAttribute("hx-headers"));
  const body = new URLSearchParams({ draft });
  fetch(form.dataset.aheadUrl, { method: "POST", headers, body }).catch(() => {}); // only a help
}

if (input) {
  input.addEventListener("input", () => {
    clearTimeout(timer);
    if (!input.value) return; // it has been sent
    timer = setTimeout(tell, input.value.length - (told ?? "").length >= GROWN ? 0 : PAUSE_MS);
  });
  document.addEventListener("visibilitychange", tell);
  tell(); // a conversation is opened to be gone on with
}
