// The composer: the field, its draft, Send, the queue and Stop.
//
// The thread tells with "chat:answering" how many answers are being written; "chat:stop" asks it to
// stop them.

import { giveFiles, takeFiles } from "./attachments.js";
import { change } from "./chips.js";
import { insert } from "./prompts.js";
import * as queue from "./queue.js";
import { store } from "./store.js";

const form = document.querySelector("[data-composer]");
const input = form?.querySelector("textarea");
const isChat = form?.hasAttribute("hx-post");
let answering = 0;

function fit() {
  if (CSS.supports("field-sizing", "content")) return;
  input.style.height = "auto";
  input.style.height = `${input.scrollHeight}px`;
}

function write(text) {
  input.value = text;
  input.dispatchEvent(new Event("input", { bubbles: true }));
}

// While an answer is written: Stop, or with a text what sends it afterwards.
function showButtons() {
  const isText = Boolean(input.value.trim());
  form.querySelector("[data-send]").hidden = answering > 0;
  form.querySelector("[data-send]").classList.toggle("send-ready", isText);
  form.querySelector("[data-add-to-queue]").hidden = !answering || !isText;
  form.querySelector("[data-stop]").hidden = !answering || isText;
}

function refuse(sentence) {
  const notice = document.createElement("p");
  notice.className = "notice notice-warn";
  notice.textContent = sentence;
  document.getElementById("refused").replaceChildren(notice);
}

function enqueue() {
  if (queue.isFull()) return refuse("The queue is full. Up to 3 messages can wait.");
  document.getElementById("refused").replaceChildren();
  queue.add(input.value, takeFiles());
  write("");
  input.focus();
}

// A conversation may have gone on in another window: the server is told what this one shows.
function lastShown() {
  const last = [...document.querySelectorAll("#thread .question, #thread .answer")].at(-1);
  return last?.id.split("-")[1] ?? "";
}

// Sends a message of the queue; what is being typed stays.
async function send({ text, files, resolve }) {
  let status = 0;
  const told = ({ detail }) => {
    if (detail.requestConfig.headers["X-Queue"]) status = detail.xhr.status;
  };
  document.addEventListener("htmx:afterRequest", told);
  // Its own source: without one it is the body, and htmx lets an element have one request at a time.
  await htmx.ajax("POST", form.getAttribute("hx-post"), {
    source: "#thread", target: "#thread", swap: "beforeend", headers: { "X-Queue": "1" },
    values: { content: text, attachment: files, after: lastShown() },
  }).catch(() => null);
  document.removeEventListener("htmx:afterRequest", told);
  resolve(status === 200);
}

async function startWith({ text, preset, sends }) {
  if (preset) {
    await change("preset", preset);
    input.focus();
  } else if (sends !== undefined) {
    write(text);
    form.requestSubmit();
  } else {
    insert(text);
  }
}

if (form) {
  const draft = `draft:${input.dataset.draft}`;
  input.value ||= store.getItem(draft) ?? sessionStorage.getItem(draft) ?? "";
  fit();

  input.addEventListener("input", () => {
    if (input.value) store.setItem(draft, input.value);
    else store.removeItem(draft);
    fit();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!input.value.trim()) return;
    if (answering) enqueue();
    else form.requestSubmit();
  });
  input.addEventListener("input", showButtons);
  document.addEventListener("chat:answering", ({ detail }) => {
    answering = detail.count;
    showButtons();
  });
  form.querySelector("[data-add-to-queue]").addEventListener("click", enqueue);
  form.querySelector("[data-stop]").addEventListener("click", () => document.dispatchEvent(new Event("chat:stop")));
  // A first question's draft goes when its conversation is there: if it is refused, it is not lost.
  const begun = sessionStorage.getItem("begun");
  sessionStorage.removeItem("begun");
  if (begun && isChat) {
    for (const kind of ["draft", "files"]) localStorage.removeItem(`${kind}:${begun}`);
  }
  form.addEventListener("submit", () => {
    if (!isChat) sessionStorage.setItem("begun", input.dataset.draft);
  });
  form.addEventListener("htmx:configRequest", ({ target, detail }) => {
    if (target === form) detail.parameters.after = lastShown();
  });
  form.addEventListener("htmx:afterRequest", (event) => {
    // What was refused is swapped in, so htmx calls it successful: the text stays.
    if (event.target !== form || !event.detail.successful || event.detail.xhr.status >= 400) return;
    document.getElementById("refused").replaceChildren();
    write("");
    input.focus();
  });
  form.addEventListener("queue:send", ({ detail }) => send(detail));
  form.addEventListener("queue:edit", ({ detail }) => {
    write(detail.text);
    giveFiles(detail.files);
    input.focus();
  });
  for (const starter of document.querySelectorAll("[data-starter]")) {
    starter.addEventListener("click", () => startWith(starter.dataset));
  }
  showButtons();
  if (matchMedia("(hover: hover)").matches) input.focus();
}
