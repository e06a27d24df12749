// Cards of rows: arrow keys move between them, one key is one decision.

const KEYS = { a: "accept", r: "reject", e: "edit", Enter: "all", Escape: "close" };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const card = event.target.closest("[data-row-card]");
  const writing = event.target.matches("input, textarea, select");
  if (writing && event.key !== "Escape") return;
  if (event.key.startsWith("Arrow")) {
    event.preventDefault();
    return move(card, event.key);
  }
  if (event.key === "Enter" && event.target !== card) return; // a button or a link of the card
  // Enter closes what it has opened.
  const button = press(card, KEYS[event.key]) ?? (event.key === "Enter" ? press(card, "close") : null);
  if (!button) return;
  event.preventDefault();
  button.click();
  // The next one is judged while the answer is under way: its card comes back where it was.
  if (["accept", "reject"].includes(KEYS[event.key])) beside(card, 1)?.focus();
});

// A card that comes back takes the focus along, unless it has gone on to another one.
document.addEventListener("htmx:load", (event) => {
  const card = event.detail.elt;
  if (!card.matches("[data-row-card]")) return;
  const at = document.activeElement;
  if (at !== document.body && !card.contains(at)) return;
  (card.querySelector("[data-written]") ?? card.querySelector("textarea") ?? card).focus();
});

function press(card, name) {
  return name ? (card?.querySelector(`[data-do="${name}"]`) ?? null) : null;
}

function all() {
  return [...document.querySelectorAll("[data-row-card]")];
}

function beside(card, step) {
  const cards = all();
  return cards[cards.indexOf(card) + step];
}

function move(card, key) {
  if (!card) return all()[0]?.focus();
  const down = key === "ArrowDown" || key === "ArrowUp" ? columns() : 1;
  const step = key === "ArrowRight" || key === "ArrowDown" ? down : -down;
  const next = beside(card, step);
  if (next) return next.focus();
  document.getElementById(step > 0 ? "cards-next" : "cards-previous")?.click();
}

// How many cards stand in a line.
function columns() {
  const tops = all().map((card) => card.getBoundingClientRect().top);
  return tops.filter((top) => Math.abs(top - tops[0]) < 2).length;
}

// The keys go on where they led to this page.
if (location.hash === "#first") all()[0]?.focus();
if (location.hash === "#last") all().at(-1)?.focus();
