// The cards of the Servers page. htmx asks for them every few seconds and idiomorph changes only
// what is different, so that focus, open details and charts stay as they are.

import { drawRates } from "./throughput.js";

/* global Idiomorph, htmx */

Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, node) =>
  !(name === "open" && node.localName === "details"); // a person opens and closes them
Idiomorph.defaults.callbacks.beforeNodeMorphed = (node) => !node.dataset?.chart; // uPlot draws inside

const SELDOM = 2000; // ms: polling faster keeps requests alive at a model server whose client is gone

const cards = document.getElementById("cards");
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
