// What was done, told for a moment in one place: #toast, in the middle of the sheet's lower edge.
// It stays while the pointer or the focus is in it. A new one replaces the old one.

const PATIENCE = 6_000; // ms
const toasts = document.getElementById("toast");
let leaving = 0;

function wait() {
  clearTimeout(leaving);
  if (toasts.firstElementChild) leaving = setTimeout(leave, PATIENCE);
}

function leave() {
  if (toasts.matches(":hover, :focus-within")) wait();
  else toasts.replaceChildren();
}

// 20 px above what the sheet ends with: the composer, a bar of buttons, on a phone the tabs.
function liftOverBars() {
  const tops = [...document.querySelectorAll(".bar-bottom, .chat-bottom, .rail")]
    .map((bar) => bar.getBoundingClientRect())
    .filter(({ top, height }) => height && top > innerHeight / 2)
    .map(({ top }) => top);
  const end = Math.min(innerHeight, toasts.parentElement.getBoundingClientRect().bottom);
  toasts.style.setProperty("--lift", `${Math.max(0, ...tops.map((top) => end - top))}px`);
}

// Say what was done. `undo`, if given, is called by the toast's button.
export function toast(text, undo) {
  const note = document.createElement("div");
  note.className = "toast-note";
  const words = document.createElement("p");
  words.textContent = text;
  note.append(words);
  if (undo) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button button-small";
    button.dataset.undo = "";
    button.textContent = "Undo";
    button.addEventListener("click", () => {
      toasts.replaceChildren();
      undo();
    });
    note.append(button);
  }
  toasts.replaceChildren(note);
}

if (toasts) {
  for (const type of ["pointerenter", "pointerleave", "focusin", "focusout"]) toasts.addEventListener(type, wait);
  new MutationObserver(() => {
    if (toasts.firstElementChild) liftOverBars();
    while (toasts.childElementCount > 1) toasts.firstElementChild.remove();
    wait();
  }).observe(toasts, { childList: true });

  // Rendered with the page: it goes to the place of all, where a screen reader hears it come.
  const told = [...document.querySelectorAll("[data-toast]")];
  if (told.length) toasts.replaceChildren(told.at(-1));
  for (const older of told.slice(0, -1)) older.remove();

  document.addEventListener("keydown", (event) => {
    if (event.code !== "KeyZ" || !event.altKey || event.ctrlKey || event.metaKey) return;
    const undo = toasts.querySelector("[data-undo]");
    if (!undo) return;
    event.preventDefault();
    event.stopPropagation();
    undo.click();
  }, true);
}
