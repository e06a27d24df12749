// The settings panel: it opens beside the chat, has tabs, and sliders that show the server's default.

const panel = document.getElementById("settings");
const OPEN = "chat-panel-open"; // kept for the next page of this tab
const TAB = "chat-panel-tab";

export function togglePanel(isOpen = panel?.hidden, takesFocus = true) {
  if (!panel) return;
  if (panel.hidden === !isOpen) return;
  panel.hidden = !isOpen;
  for (const button of document.querySelectorAll("[data-panel-toggle]")) button.setAttribute("aria-expanded", isOpen);
  sessionStorage.setItem(OPEN, isOpen ? "1" : "");
  if (!isOpen) return document.querySelector("[data-panel-toggle]")?.focus();
  document.dispatchEvent(new CustomEvent("chat:settings-open"));
  if (takesFocus) panel.focus();
  if (!panel.querySelector("#settings-panel")) htmx.trigger(panel, "open");
}

document.addEventListener("click", ({ target }) => {
  if (target.closest("[data-panel-toggle]")) togglePanel();
  const tab = target.closest?.("#settings [role=tab]");
  if (tab) show(tab.dataset.tab, true);
});

// Escape in the panel, or nowhere, closes it and does nothing else.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || !panel || panel.hidden) return;
  const isHere = panel.contains(event.target) || event.target === document.body;
  if (!isHere || document.querySelector("dialog[open], :popover-open, [data-menu][open]")) return;
  event.preventDefault();
  event.stopPropagation();
  togglePanel(false);
}, true);

panel?.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step || !event.target.matches("[role=tab]")) return;
  const tabs = [...panel.querySelectorAll("[role=tab]")];
  show(tabs.at((tabs.indexOf(event.target) + step) % tabs.length).dataset.tab, true);
});

function show(name, takesFocus) {
  for (const tab of panel.querySelectorAll("[role=tab]")) {
    const isShown = tab.dataset.tab === name;
    tab.setAttribute("aria-selected", isShown);
    tab.tabIndex = isShown ? 0 : -1;
    document.getElementById(tab.getAttribute("aria-controls")).hidden = !isShown;
    if (isShown && takesFocus) tab.focus();
  }
  sessionStorage.setItem(TAB, name);
}

document.addEventListener("htmx:afterSettle", ({ detail }) => {
  if (detail.target !== panel) return;
  show(sessionStorage.getItem(TAB) || "model", false);
});

// A chip of the composer was changed: the panel, if it was ever opened, would show and save the old.
document.addEventListener("chat:settings-changed", () => {
  if (!panel?.querySelector("#settings-panel")) return;
  htmx.ajax("GET", panel.getAttribute("hx-get"), { source: panel, target: panel, swap: "innerHTML" });
});

// --- Sliders ----------------------------------------------------------------------------------

// The number is what is saved; empty is the server's default. The slider follows it, and back.
const parts = (element) => {
  const slider = element.closest?.("[data-slider]");
  return slider ? [slider, slider.querySelector("[type=number]"), slider.querySelector("[type=range]")] : [];
};

function follow(slider, number, range) {
  slider.toggleAttribute("data-default", number.value === "");
  if (range) range.value = number.value || range.dataset.default || range.min;
}

panel?.addEventListener("input", ({ target }) => {
  const [slider, number, range] = parts(target);
  if (!slider) return;
  if (target === range) number.value = range.value;
  follow(slider, number, target === range ? null : range);
});

panel?.addEventListener("dblclick", ({ target }) => {
  const [slider, number, range] = parts(target);
  if (target !== range || !range) return;
  number.value = "";
  follow(slider, number, range);
  number.dispatchEvent(new Event("change", { bubbles: true }));
});

if (panel && sessionStorage.getItem(OPEN) && matchMedia("(min-width: 1100px)").matches) {
  window.addEventListener("load", () => togglePanel(true, false));
}
