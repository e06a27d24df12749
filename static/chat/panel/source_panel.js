// A source that an answer cites, in the side panel; the focus goes there and comes back.

/* global htmx */

import { togglePanel } from "./panel.js";

const panel = document.getElementById("source");
let opener = null;

const shown = () => panel.querySelector("[data-source-shown]")?.dataset.sourceShown;
const linksTo = (address) => [...document.querySelectorAll("a[data-source]")].filter((link) => link.dataset.source === address);

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-source]");
  if (link && panel && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    open(link);
  } else if (event.target.closest?.("[data-source-close]")) close();
});

async function open(link) {
  opener = link;
  await htmx.ajax("GET", link.dataset.source, { source: panel, target: panel, swap: "innerHTML" });
  if (opener !== link) return;
  if (shown() !== link.dataset.source) return location.assign(link.href);
  togglePanel(false);
  panel.hidden = false;
  panel.focus({ preventScroll: true });
  link.scrollIntoView({ block: "nearest" });
  show();
}

function show() {
  panel.scrollTop = 0;
  for (const link of document.querySelectorAll("a[data-source][aria-expanded]")) link.removeAttribute("aria-expanded");
  if (!panel.hidden) for (const link of linksTo(shown())) link.setAttribute("aria-expanded", "true");
}

function close(takesFocus = true) {
  const address = opener?.dataset.source;
  // The thread may have been drawn anew: the mark is another element then.
  const back = opener?.isConnected ? opener : linksTo(address)[0];
  panel.hidden = true;
  opener = null;
  show();
  if (takesFocus) (back ?? document.querySelector("[data-scroll]")).focus();
}

// The arrows of the panel fetch another source.
document.addEventListener("htmx:afterSettle", ({ detail }) => {
  if (detail.target === panel && !panel.hidden) show();
});

// The settings open in the same place.
document.addEventListener("chat:settings-open", () => panel && !panel.hidden && close(false));

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || !panel || panel.hidden) return;
  const isHere = panel.contains(event.target) || event.target === document.body || event.target.matches("a[data-source]");
  if (!isHere || document.querySelector("dialog[open], :popover-open, [data-menu][open]")) return;
  event.preventDefault();
  event.stopPropagation();
  close();
}, true);
