// The end of the thread stays in view for a reader who is there, and for nobody else.
//
// Elsewhere the browser keeps what is being read in its place, while parts above it get their
// height; a button leads back.

const NEAR = 48; // pixels from the end

const scroller = document.querySelector("[data-scroll]");
const button = document.querySelector("[data-to-end]");
const label = button?.querySelector("[data-label]");
const bars = button?.querySelector("[data-writing]");
let stuck;
let writing = 0;

export function stick(isAtEnd) {
  if (isAtEnd === stuck) return;
  stuck = isAtEnd;
  scroller?.classList.toggle("at-end", stuck);
  showButton();
}

export function toEnd() {
  if (scroller && stuck) scroller.scrollTop = scroller.scrollHeight;
}

const fromEnd = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;

function showButton(hasNew = false) {
  if (!button) return;
  if (stuck) label.textContent = "Jump to end";
  else if (hasNew) label.textContent = "New answer";
  button.hidden = stuck || fromEnd() < NEAR;
  bars.hidden = !writing;
}

document.addEventListener("chat:answering", ({ detail }) => {
  const hasNew = detail.count < writing;
  writing = detail.count;
  if (writing) label?.replaceChildren("Jump to end");
  showButton(hasNew);
});

function jump() {
  stick(true);
  toEnd();
}

button?.addEventListener("click", jump);

// The thread grows under a reader at its end: messages get their height when they come near, a
// formula is higher than its source was, lines break elsewhere when a phone is turned. Only who
// scrolls up has left the end, so growing between a scroll and its event is not taken for leaving.
let place = 0;
scroller?.addEventListener("scroll", () => {
  stick(fromEnd() < NEAR || (stuck && scroller.scrollTop >= place));
  place = scroller.scrollTop;
}, { passive: true });

// Who selects, or steps up by keys, reads there.
document.addEventListener("selectionchange", () => {
  const selection = document.getSelection();
  if (!selection.isCollapsed && scroller?.contains(selection.anchorNode) && writing) stick(false);
});
document.addEventListener("keydown", (event) => {
  const isField = event.target.matches?.("input, textarea, select");
  if (isField && event.target.value || event.target.closest?.("dialog, [popover]")) return;
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  // In a field these keys do not move the thread: up in an empty composer edits the last message.
  if (["ArrowUp", "PageUp", "Home"].includes(event.key) && !isField) stick(false);
  else if (event.key === "End" && scroller) {
    event.preventDefault();
    jump();
  }
});

if (scroller) {
  const sizes = new ResizeObserver(() => {
    toEnd();
    showButton();
  });
  for (const element of [scroller, scroller.firstElementChild]) sizes.observe(element);
}
stick(true);
