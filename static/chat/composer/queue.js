// The next messages, typed while an answer is being written: sent one by one when it is done.
//
// They are kept in the browser's storage, which all windows of the chat share: a window takes one out
// under a lock before it sends it. An answer that failed, or was stopped, holds the queue.

import { store } from "./store.js";

const MAX = 3;
const form = document.querySelector("[data-composer][hx-post]");
const list = form?.querySelector("[data-queue]");
const input = form?.querySelector("textarea");
const key = `queue:${input?.dataset.draft}`;
let isHeld = false;

export const isFull = () => read().length >= MAX;

function read() {
  try {
    return JSON.parse(store.getItem(key)) ?? [];
  } catch {
    return [];
  }
}

function write(items) {
  if (items.length) store.setItem(key, JSON.stringify(items));
  else store.removeItem(key);
  render();
}

export function add(text, files) {
  if (isFull()) return false;
  write([...read(), { text, files }]);
  return true;
}

function button(name, label, icon) {
  const made = document.createElement("button");
  made.type = "button";
  made.dataset.queueAction = name;
  made.setAttribute("aria-label", label);
  made.title = label;
  made.innerHTML = icon;
  return made;
}

const sheet = form?.querySelector("[data-add-to-queue] use").getAttribute("href").split("#")[0];
const icon = (name) => `<svg class="icon" aria-hidden="true"><use href="${sheet}#${name}"/></svg>`;

function render() {
  const items = read();
  list.hidden = !items.length;
  list.classList.toggle("queue-held", isHeld);
  list.replaceChildren(...items.map(({ text, files }, index) => {
    const line = document.createElement("li");
    line.className = "queue-line";
    line.draggable = true;
    line.dataset.index = index;
    const words = document.createElement("span");
    words.className = "clip";
    words.textContent = text + (files.length ? ` (${files.length} file${files.length === 1 ? "" : "s"})` : "");
    line.append(words);
    if (index) line.append(button("up", "Move up", icon("arrow-up")));
    line.append(button("edit", "Edit", icon("edit")), button("remove", "Remove", icon("close")));
    return line;
  }));
  if (isHeld && items.length) {
    const line = document.createElement("li");
    line.className = "queue-line queue-note";
    line.append("The queue is on hold.");
    const send = button("resume", "Send the next message", "Send now");
    send.classList.add("button", "button-small");
    line.append(send);
    list.append(line);
  }
}

// Whether the thread ends with an answer after which the next message may go.
function lastFailed() {
  const last = [...document.querySelectorAll("#thread .answer")].at(-1);
  return last !== undefined && last.dataset.status !== undefined && last.dataset.status !== "complete";
}

function next() {
  navigator.locks?.request(key, { ifAvailable: true }, async (lock) => {
    const [first, ...rest] = read();
    if (!lock || !first || form.hasAttribute("data-sending")) return;
    write(rest);
    const sent = await new Promise((resolve) => {
      form.dispatchEvent(new CustomEvent("queue:send", { detail: { ...first, resolve } }));
    });
    if (!sent) {
      isHeld = true;
      write([first, ...read()]);
    }
  });
}

function move(from, to) {
  const items = read();
  const [moved] = items.splice(from, 1);
  items.splice(to, 0, moved);
  write(items);
}

function act(name, index) {
  const items = read();
  const [item] = items.splice(index, 1);
  if (name === "up") return move(index, index - 1);
  if (name === "resume") {
    isHeld = false;
    render();
    return next();
  }
  write(items);
  if (name === "edit") form.dispatchEvent(new CustomEvent("queue:edit", { detail: item }));
  else input.focus();
}

if (form) {
  render();
  list.addEventListener("click", ({ target }) => {
    const pressed = target.closest("[data-queue-action]");
    if (pressed) act(pressed.dataset.queueAction, Number(pressed.closest("li").dataset.index ?? 0));
  });
  list.addEventListener("dragstart", ({ target, dataTransfer }) => {
    dataTransfer.setData("text/queue", target.dataset.index);
  });
  list.addEventListener("dragover", (event) => event.preventDefault());
  list.addEventListener("drop", (event) => {
    event.preventDefault();
    const to = event.target.closest("[data-index]");
    const from = event.dataTransfer.getData("text/queue");
    if (to && from !== "") move(Number(from), Number(to.dataset.index));
  });
  window.addEventListener("storage", (event) => event.key === key && render());
  document.addEventListener("chat:answering", ({ detail }) => {
    if (detail.count || !read().length) return;
    isHeld = lastFailed();
    if (isHeld) render();
    else next();
  });
}
