// The chat list: its rows' menu, keys, selection and states.

import "./list_states.js";

const form = document.querySelector("[data-bulk]");
const links = document.getElementById("chat-links");
const toggle = form?.querySelector("[data-select]");
const actions = form?.querySelector(".chat-bulk-actions");
const rowMenu = document.getElementById("row-menu");

// The browser's time zone decides what "Today" is.
document.cookie = `timezone=${Intl.DateTimeFormat().resolvedOptions().timeZone};path=/;max-age=31536000;samesite=lax`;

// --- Selection --------------------------------------------------------------------------------

const ticks = () => [...form.querySelectorAll(".chat-tick")];

function count() {
  const ticked = ticks().filter((tick) => tick.checked).length;
  form.querySelector("[data-count]").textContent = `${ticked.toLocaleString()} selected`;
  for (const button of actions.querySelectorAll("button")) button.disabled = ticked === 0;
  return ticked;
}

function select(isOn) {
  form.classList.toggle("selecting", isOn);
  toggle.setAttribute("aria-pressed", isOn);
  toggle.textContent = isOn ? "Done" : "Select";
  actions.hidden = !isOn;
  if (!isOn) for (const tick of ticks()) tick.checked = false;
  count();
}

toggle?.addEventListener("click", () => select(!form.classList.contains("selecting")));

let lastTicked = null;
form?.addEventListener("click", (event) => {
  if (!event.target.matches(".chat-tick")) return;
  const all = ticks();
  if (event.shiftKey && lastTicked?.isConnected) {
    const [from, to] = [all.indexOf(lastTicked), all.indexOf(event.target)].sort((a, b) => a - b);
    for (const tick of all.slice(from, to + 1)) tick.checked = event.target.checked;
  }
  lastTicked = event.target;
  count();
});

// Enter in the field of tags means "Add tag", not the first button of the form.
form?.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.target.name !== "tags") return;
  event.preventDefault();
  form.requestSubmit(form.querySelector("[value=tag]"));
});

// A download is no fragment: the browser sends the form itself.
form?.addEventListener("htmx:confirm", (event) => {
  const button = event.detail.triggeringEvent?.submitter;
  if (event.target !== form || !button?.hasAttribute("data-plain-submit")) return;
  event.preventDefault();
  form.action = button.formAction;
  form.submit();
  form.action = form.getAttribute("hx-post");
});

// --- Rows -------------------------------------------------------------------------------------

const rows = () => [...links.querySelectorAll("[data-row]")].filter((row) => row.checkVisibility());
const linkOf = (row) => row?.querySelector(".chat-link");

// After a change the list is drawn anew: open projects open again, and the focus goes to the row
// that had it, or to the next one that is still there.
let near = [];
let opened = [];
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.target !== links) return;
  const row = document.activeElement.closest?.("[data-row]") ?? openedBy?.closest("[data-row]");
  const keys = rows().map((one) => one.dataset.row);
  const place = row ? keys.indexOf(row.dataset.row) : -1;
  near = place < 0 ? [] : [...keys.slice(place), ...keys.slice(0, place).reverse()];
  opened = [...links.querySelectorAll(".list-toggle[aria-expanded=true]")].map((one) => one.getAttribute("aria-controls"));
  rowMenu.hidePopover();
});
document.addEventListener("htmx:afterSettle", ({ detail }) => {
  if (detail.target !== links) return;
  for (const id of opened) {
    const button = links.querySelector(`[aria-controls="${id}"][aria-expanded=false]`);
    if (button) toggleProject(button);
  }
  const key = near.find((one) => links.querySelector(`[data-row="${one}"]`));
  if (key) linkOf(links.querySelector(`[data-row="${key}"]`)).focus();
  [near, opened] = [[], []];
  select(false);
});

function remove(row) {
  htmx.ajax("POST", `/chat/${row.dataset.row}/delete/`, { source: row, target: links });
}

// The title becomes a field in its place. Enter saves, Escape leaves it as it was.
function rename(row) {
  const link = linkOf(row);
  const field = Object.assign(document.createElement("input"), {
    className: "row-rename", maxLength: 80, value: link.querySelector("[id^=listed-]").textContent,
  });
  field.setAttribute("aria-label", "Title");
  let isLeft = false;
  const leave = (isDone) => {
    if (isLeft) return;
    isLeft = true;
    const title = field.value.trim();
    const isChanged = isDone && title && title !== field.defaultValue;
    field.remove();
    link.hidden = false;
    link.focus();
    if (!isChanged) return;
    const values = { title, from_list: 1 };
    htmx.ajax("POST", `/chat/${row.dataset.row}/rename/`, { source: row, swap: "none", values });
  };
  field.defaultValue = field.value;
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    leave(event.key === "Enter");
  });
  field.addEventListener("blur", () => leave(true));
  link.hidden = true;
  link.after(field);
  field.select();
}

function renameOpenChat() {
  const title = document.querySelector(".chat-rename input.chat-title");
  title?.focus();
  title?.select();
}

document.addEventListener("keydown", (event) => {
  const row = event.target.closest?.("[data-row]");
  const isRow = row && !event.target.matches("input") && !(event.ctrlKey || event.metaKey || event.altKey);
  if (event.key === "F2" && !event.target.matches?.("input, textarea, select")) {
    event.preventDefault();
    if (isRow) rename(row);
    else renameOpenChat();
    return;
  }
  if (!isRow) return;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Delete") remove(row);
  else if (event.key.toLowerCase() === "x") tick(row);
  else if (step) linkOf(rows()[rows().indexOf(row) + step])?.focus();
  else return;
  event.preventDefault();
});

function tick(row) {
  if (!form.classList.contains("selecting")) select(true);
  const box = row.querySelector(".chat-tick");
  box.checked = !box.checked;
  lastTicked = box;
  if (!count()) select(false);
}

// --- Menus ------------------------------------------------------------------------------------

let openedBy = null;

async function openMenu(button) {
  openedBy = button;
  await htmx.ajax("GET", button.dataset.rowMenu, { source: rowMenu, target: rowMenu, swap: "innerHTML" });
  rowMenu.showPopover();
  const at = button.getBoundingClientRect();
  const below = Math.min(at.bottom + 4, innerHeight - rowMenu.offsetHeight - 8);
  rowMenu.style.top = `${Math.max(8, below)}px`;
  rowMenu.style.left = `${Math.max(8, Math.min(at.left, innerWidth - rowMenu.offsetWidth - 8))}px`;
  rowMenu.querySelector(".menu-item")?.focus();
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-row-menu]");
  if (button) openMenu(button);
  const renaming = target.closest("[data-rename]");
  if (renaming) {
    const row = rowMenu.contains(renaming) ? openedBy.closest("[data-row]") : null;
    rowMenu.hidePopover();
    if (row) rename(row);
    else renameOpenChat();
  }
  const folder = target.closest(".list-toggle");
  if (folder) toggleProject(folder);
});
document.addEventListener("contextmenu", (event) => {
  const button = event.target.closest?.("[data-row]")?.querySelector("[data-row-menu]");
  if (!button || event.shiftKey) return;
  event.preventDefault();
  openMenu(button);
});
rowMenu?.addEventListener("toggle", ({ newState }) => {
  if (newState === "closed" && rowMenu.contains(document.activeElement)) openedBy?.focus();
});
rowMenu?.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || event.target.matches("input")) return;
  event.preventDefault();
  const items = [...rowMenu.querySelectorAll(".menu-item")].filter((item) => item.checkVisibility());
  items.at((items.indexOf(document.activeElement) + step) % items.length).focus();
});

function toggleProject(button) {
  const chats = document.getElementById(button.getAttribute("aria-controls"));
  chats.hidden = !chats.hidden;
  button.setAttribute("aria-expanded", !chats.hidden);
  if (!chats.hidden && !chats.childElementCount) htmx.trigger(chats, "open");
}

// Where the list is in a drawer, whoever chose a part of it wants to see that part.
const drawer = document.getElementById("list");
const part = new URLSearchParams(location.search);
if (drawer && (part.has("tag") || part.has("archived")) && matchMedia("(max-width: 1099px)").matches) {
  drawer.showPopover();
}

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("[data-menu][open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});
document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector("[data-menu][open]");
  if (!menu) return;
  event.stopImmediatePropagation();
  menu.open = false;
  menu.querySelector("summary").focus();
}, true);

// A large import takes a while: say so, and do not send it twice.
document.querySelector("[data-import]")?.addEventListener("submit", ({ target }) => {
  target.querySelector("[data-importing]").hidden = false;
  target.querySelector("button").disabled = true;
});

// A title that the model has written goes into the field, unless somebody is at it.
document.addEventListener("htmx:afterSettle", () => {
  const news = document.querySelector("#title-news[data-title]");
  const field = document.querySelector(".chat-rename .chat-title");
  if (!news || !field) return;
  if (field !== document.activeElement && field.value === field.defaultValue) {
    field.value = field.defaultValue = news.dataset.title;
    field.form.querySelector("h1").textContent = news.dataset.title;
    const listed = document.getElementById(`listed-${news.dataset.conversation}`);
    if (listed) listed.textContent = news.dataset.title;
  }
  news.removeAttribute("data-title");
});
