// Attachments of the next message: chosen, pasted or dropped. Each is uploaded at once, so that its
// size in tokens is known before the message is sent. Until then it is kept with the draft. A long
// text that is pasted becomes a file, whose menu puts it into the field after all.

import { store } from "./store.js";

const form = document.querySelector("[data-composer]");
const LONG = 4000; // characters of a pasted text that becomes a file
const place = form?.querySelector("[data-attachments]");
const chooser = form?.querySelector("[data-files]");
const room = document.querySelector(".chat-room");

const refused = document.getElementById("refused");
const draft = `files:${form?.querySelector("textarea").dataset.draft}`;

const input = form?.querySelector("textarea");
const camera = form?.querySelector("[data-camera]");

const fileIds = () => [...place.querySelectorAll("[name=attachment]")].map((field) => field.value);

function keep() {
  const ids = fileIds();
  if (ids.length) store.setItem(draft, ids.join(" "));
  else store.removeItem(draft);
}

// For a message that waits: the files leave the composer, and come back when it is edited.
export function takeFiles() {
  const ids = fileIds();
  place.replaceChildren();
  keep();
  return ids;
}

export function giveFiles(ids) {
  const all = [...fileIds(), ...ids];
  if (all.length) store.setItem(draft, all.join(" "));
  return bringBack();
}

// Who is to read the files: whether it sees pictures is said beside them.
const reader = () => [["conversation", place.dataset.conversation]];

const asFile = (text) => new File([text], "Pasted text.txt", { type: "text/plain" });

async function pasteAsFile() {
  const text = await navigator.clipboard.readText().catch(() => "");
  if (text) return add([asFile(text)]);
  refused.innerHTML = inNotice(null, "The clipboard has no text, or the browser does not allow reading it.");
}

async function asText(button) {
  const chip = button.closest("[data-attachment]");
  const answer = await fetch(button.dataset.asText).catch(() => null);
  if (!answer?.ok) return;
  input.setRangeText(await answer.text(), input.selectionStart, input.selectionEnd, "end");
  input.dispatchEvent(new Event("input", { bubbles: true }));
  input.focus();
  chip.querySelector("[data-remove]").click();
}

// Shows what waits with the draft: after a reload, and anew for another model.
async function bringBack() {
  const ids = store.getItem(draft)?.split(" ");
  if (!ids) return;
  const asked = new URLSearchParams([...ids.map((id) => ["id", id]), ...reader()]);
  const answer = await fetch(`${place.dataset.attachments}?${asked}`).catch(() => null);
  if (!answer?.ok) return;
  for (const chip of place.querySelectorAll("[data-attachment]")) chip.remove();
  place.prepend(document.createRange().createContextualFragment(await answer.text()));
  htmx.process(place);
  keep();
}

async function add(files) {
  refused.replaceChildren();
  for (const file of files) {
    const waiting = document.createElement("span");
    waiting.className = "attachment faint";
    waiting.textContent = `${file.name}…`;
    place.append(waiting);
    const body = new FormData();
    body.append("file", file);
    for (const [name, value] of reader()) body.append(name, value);
    const headers = JSON.parse(document.body.getAttribute("hx-headers"));
    const html = await fetch(place.dataset.attachments, { method: "POST", headers, body })
      .then(async (answer) => {
        if (answer.ok) return [place, await answer.text()];
        const text = await answer.text();
        if ([413, 422, 429].includes(answer.status)) return [refused, inNotice(answer, text)];
        throw new Error(answer.status);
      })
      .catch(() => [null, null]);
    show(waiting, ...html);
  }
}

// Some refusals are a sentence, others the notice with it.
function inNotice(answer, text) {
  if (answer && !answer.headers.get("Content-Type")?.startsWith("text/plain")) return text;
  const notice = document.createElement("p");
  notice.className = "notice notice-warn";
  notice.textContent = text;
  return notice.outerHTML;
}

function show(waiting, where, html) {
  const made = document.createRange().createContextualFragment(html ?? "");
  if (where === place) {
    const chip = made.firstElementChild;
    waiting.replaceWith(made);
    htmx.process(chip);
    keep();
  } else if (where) {
    waiting.remove();
    where.append(made);
  } else {
    waiting.textContent = "Upload failed. Try again.";
    setTimeout(() => waiting.remove(), 5000);
  }
}

if (place) {
  form.querySelector("[data-attach]").addEventListener("click", () => chooser.click());
  chooser.addEventListener("change", async () => {
    const files = [...chooser.files];
    chooser.value = "";
    await add(files);
  });
  form.querySelector("[data-photo]").addEventListener("click", () => camera.click());
  camera.addEventListener("change", () => add([...camera.files]));
  form.querySelector("[data-paste-file]").addEventListener("click", pasteAsFile);
  for (const item of form.querySelectorAll("#composer-add [role=menuitem]")) {
    item.addEventListener("click", () => item.closest("[popover]").hidePopover());
  }
  place.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-as-text]");
    if (button) asText(button);
  });
  input.addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text/plain");
    const files = text.length > LONG ? [asFile(text)] : [...event.clipboardData.files];
    if (!files.length) return;
    event.preventDefault();
    add(files);
  });
  room.addEventListener("dragover", (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    room.classList.add("dropping");
  });
  room.addEventListener("dragleave", (event) => {
    if (!room.contains(event.relatedTarget)) room.classList.remove("dropping");
  });
  room.addEventListener("drop", (event) => {
    room.classList.remove("dropping");
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    add([...event.dataTransfer.files]);
  });
  form.addEventListener("htmx:afterRequest", (event) => {
    const { successful, xhr } = event.detail;
    if (event.target === form && successful && xhr.status !== 422) place.replaceChildren();
    keep();
  });
  // The model has changed: by its chip, or in the panel.
  document.addEventListener("chat:settings-changed", bringBack);
  document.addEventListener("htmx:oobAfterSwap", ({ detail }) => {
    if (detail.target.id === "model-state") bringBack();
  });
  bringBack();
}
