// The chat list: selecting several chats, and menus that close by themselves.

const form = document.querySelector("[data-bulk]");
const toggle = form?.querySelector("[data-select]");
const actions = form?.querySelector(".chat-bulk-actions");

function count() {
  const ticked = form.querySelectorAll(".chat-tick:checked").length;
  form.querySelector("[data-count]").textContent = `${ticked.toLocaleString()} selected`;
  for (const button of actions.querySelectorAll("button")) button.disabled = ticked === 0;
}

toggle?.addEventListener("click", () => {
  const selecting = form.classList.toggle("selecting");
  toggle.setAttribute("aria-pressed", selecting);
  toggle.textContent = selecting ? "Done" : "Select";
  actions.hidden = !selecting;
  if (!selecting) for (const tick of form.querySelectorAll(".chat-tick")) tick.checked = false;
  count();
});

let lastTicked = null;
form?.addEventListener("click", (event) => {
  if (!event.target.matches(".chat-tick")) return;
  const ticks = [...form.querySelectorAll(".chat-tick")];
  if (event.shiftKey && lastTicked?.isConnected) {
    const [from, to] = [ticks.indexOf(lastTicked), ticks.indexOf(event.target)].sort((a, b) => a - b);
    for (const tick of ticks.slice(from, to + 1)) tick.checked = event.target.checked;
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
