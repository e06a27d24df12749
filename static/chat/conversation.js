// The chat page: follows answers while they are generated, and keeps the end in view.

import { Announcer } from "./thread/screen_reader.js";
import { AnswerStream } from "./thread/answer_stream.js";
import { stick, toEnd } from "./thread/follow_end.js";
import { notifyOfAnswer } from "./thread/notify.js";
import { markTab } from "./thread/tab_mark.js";
import "./thread/message_actions.js";
import "./popovers.js";
import "./composer/composer.js";
import "./composer/chips.js";
import "./composer/prompts.js";
import "./composer/attachments.js";
import "./keyboard.js";
import "./list/list.js";
import "../core/text/markdown.js";
import "./composer/prefill.js";
import "./panel/source_panel.js";
import "./composer/speech.js";

const scroller = document.querySelector("[data-scroll]");
const composer = document.querySelector("[data-composer]");
const input = composer?.querySelector("textarea");
const live = new Map(); // article -> AnswerStream
const announcer = new Announcer(document.querySelector("[data-announce]"));

// --- The thread -------------------------------------------------------------------------------

function followNew() {
  for (const [article, answer] of live) {
    if (article.isConnected) continue;
    answer.leave();
    live.delete(article);
  }
  for (const article of document.querySelectorAll("[data-events]")) {
    if (!live.has(article)) live.set(article, new AnswerStream(article, { grew, ended }));
  }
  showState();
}

function grew() {
  for (const answer of live.values()) announcer.grew(answer);
}

function ended(answer) {
  live.delete(answer.article);
  announcer.ended(answer);
  markTab();
  notifyOfAnswer();
  showState();
}

// Who works by keys stays where he was when the thread is drawn anew: at the button of that name.
let left = null;
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const name = document.activeElement.getAttribute("aria-label");
  const isLost = detail.target.id === "thread" && detail.target.contains(document.activeElement);
  left = isLost ? { name, place: named(name).indexOf(document.activeElement) } : null;
});
document.addEventListener("htmx:afterSettle", () => {
  if (left && document.activeElement === document.body) {
    // Who has edited a question goes on writing, where that opens no keyboard over the page.
    const writes = matchMedia("(hover: hover)").matches ? input : null;
    (named(left.name)[left.place] ?? writes ?? scroller).focus({ preventScroll: true });
  }
  left = null;
});

function named(name) {
  const buttons = [...document.querySelectorAll("#thread button[aria-label]:not([disabled])")];
  return buttons.filter((button) => button.getAttribute("aria-label") === name);
}

// Earlier messages come in above: what is being read stays where it is.
let fromEnd = null;
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.target.hasAttribute("data-earlier")) fromEnd = scroller.scrollHeight - scroller.scrollTop;
});
document.addEventListener("htmx:afterSettle", () => {
  if (fromEnd !== null) scroller.scrollTop = scroller.scrollHeight - fromEnd;
  fromEnd = null;
});

document.addEventListener("htmx:afterSwap", (event) => {
  const { target } = event.detail;
  if (target.id === "thread" || target.matches(".answer, [data-state]")) {
    followNew();
    toEnd();
  }
});

function stop() {
  const headers = JSON.parse(document.body.getAttribute("hx-headers"));
  for (const answer of live.values()) {
    const sent = fetch(answer.article.dataset.stopUrl, { method: "POST", headers });
    sent.catch(() => answer.say("Workbench cannot be reached. The answer was not stopped."));
  }
}

// Escape first closes what is open and ends what is being typed elsewhere, then stops an answer.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
  if (document.querySelector("dialog[open], :popover-open, [data-menu][open]")) return;
  const isElsewhere = event.target !== input && event.target.matches?.("input, select, textarea");
  if (live.size && !isElsewhere) stop();
});

// The machine has slept, or its network was another one.
const renew = () => live.forEach((answer) => answer.renew());
window.addEventListener("online", renew);
document.addEventListener("visibilitychange", () => document.hidden || renew());

// A browser that shows a page of its history again has closed its connections.
window.addEventListener("pageshow", (event) => event.persisted && location.reload());

// The editor of fields is fetched with the panel that has it.
document.addEventListener("htmx:afterSettle", () => {
  if (document.querySelector("[data-answer-fields]")) import("./composer/structured_output.js");
});

// --- The composer ------------------------------------------------------------------------------

// The composer shows Send or Stop, and sends what waits: it is told how many answers are written.
function showState() {
  document.dispatchEvent(new CustomEvent("chat:answering", { detail: { count: live.size } }));
}

document.addEventListener("chat:stop", stop);
composer?.addEventListener("submit", () => stick(true));

// What a search found is shown in the middle, else the end. Messages get their height only when
// they come near, so it takes a few frames until the place is right.
function start(frames = 4) {
  const sought = location.hash && document.getElementById(location.hash.slice(1));
  if (sought) {
    stick(false);
    sought.classList.add("found");
    sought.scrollIntoView({ block: "center" });
    sought.focus({ preventScroll: true });
  } else {
    toEnd();
  }
  if (frames) requestAnimationFrame(() => start(frames - 1));
}

followNew();
start();
