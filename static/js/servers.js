// The Servers page. htmx asks for the cards every few seconds and idiomorph changes only what is
// different, so that focus, open details and charts stay as they are.

import { drawRates } from "./server_rates.js";

/* global Idiomorph, htmx */

if (window.Idiomorph) {
  Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, node) =>
    !(name === "open" && node.localName === "details"); // a person opens and closes them
  Idiomorph.defaults.callbacks.beforeNodeMorphed = (node) => !node.dataset?.chart; // ECharts draws inside
}

const SELDOM = 2000; // ms: polling faster keeps requests alive at a model server whose client is gone

const cards = document.getElementById("cards");
if (cards) {
  let asked = -SELDOM;
  cards.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target !== cards || document.hidden) return;
    if (performance.now() - asked < SELDOM) event.preventDefault();
    else asked = performance.now();
  });
  drawRates(cards);
  cards.addEventListener("htmx:afterSettle", () => drawRates(cards));
  // A hidden tab asks for nothing (shell.js); back again, it does not wait for its turn.
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) htmx.trigger(cards, "look");
  });
}

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(source.textContent);
    const said = button.firstChild.textContent;
    button.firstChild.textContent = "Copied";
    setTimeout(() => { button.firstChild.textContent = said; }, 1500);
  } catch { // without HTTPS there is no clipboard: the command is selected instead
    window.getSelection().selectAllChildren(source);
  }
});
