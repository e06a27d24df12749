// Shared by every page: errors of fragments, confirmations, polling, tabs and the scroll position.

import "./dialogs.js";
import "./toast.js";
import "./forms/form_errors.js";
import "./times.js";

// Statuses whose body explains the error and when to retry.
const IN_WORDS = new Set([408, 413, 422, 429, 503, 507]);
const main = document.getElementById("main");

document.addEventListener("htmx:responseError", (event) => {
  const { xhr } = event.detail;
  const isPlain = xhr.getResponseHeader("Content-Type")?.startsWith("text/plain");
  if (isPlain && IN_WORDS.has(xhr.status)) say(xhr.responseText);
  else say(`Workbench returned an error (${xhr.status}). Try again, or see the log.`);
});
document.addEventListener("htmx:sendError", () => {
  say("Workbench cannot be reached. Check that it is running.");
});

let spoken = null;

function say(text) {
  spoken ??= document.createElement("p");
  spoken.className = "notice notice-bad";
  spoken.setAttribute("role", "alert");
  spoken.textContent = text;
  (main.querySelector(".page") ?? main).prepend(spoken);
}

// A form with data-confirm asks before it is sent.
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

// A page that asks the server again and again stops doing so while nobody looks.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.detail.elt.getAttribute("hx-trigger")?.includes("every")) {
    event.preventDefault();
  }
});

// On a narrow screen the row of tabs is longer than the page: the one that is open shall be seen.
for (const tabs of document.querySelectorAll(".tabs")) {
  const open = tabs.querySelector("[aria-current]");
  if (open) tabs.scrollLeft = open.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - open.offsetWidth) / 2;
}

// Keys that scroll go to the document, which does not scroll where the sheet does.
const STEPS = { PageDown: 0.9, PageUp: -0.9, " ": 0.9, ArrowDown: 0.06, ArrowUp: -0.06, Home: -1e6, End: 1e6 };
document.addEventListener("keydown", (event) => {
  const step = STEPS[event.key];
  if (!step || event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
  if (document.activeElement === document.body) main?.scrollBy({ top: step * main.clientHeight });
});

// Going back shows the place one came from: browsers remember the document's alone.
const place = `scroll:${location.pathname}${location.search}`;
const [navigation] = performance.getEntriesByType("navigation");
if (main && navigation?.type !== "navigate") main.scrollTop = Number(sessionStorage.getItem(place));
addEventListener("pagehide", () => {
  if (main) sessionStorage.setItem(place, String(Math.round(main.scrollTop)));
});

// What somebody was writing is not for who uses this browser after them.
document.addEventListener("submit", ({ target }) => {
  // Not `target.action`: a form with a button of that name gives the button.
  if (!target.getAttribute("action")?.endsWith("/logout/")) return;
  for (const key of Object.keys(localStorage)) {
    if (/^(draft|files):/.test(key)) localStorage.removeItem(key);
  }
});

// The address / leads back to the place where one was last.
const here = document.querySelector(".rail-link[data-place][aria-current]")?.dataset.place;
if (here) document.cookie = `place=${here}; path=/; max-age=31536000; SameSite=Lax`;
