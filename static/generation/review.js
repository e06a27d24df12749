// Reviewing with the keyboard: one key per decision, except while typing.

const KEYS = { a: "do-accept", r: "do-reject", z: "do-undo", ArrowRight: "go-next", ArrowLeft: "go-before" };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const writing = event.target.matches("input, textarea, select");
  if (writing && event.key === "Escape") return event.target.blur();
  if (writing) return;
  if (event.key === "e") {
    event.preventDefault();
    (document.querySelector("[data-written]") ?? document.querySelector(".review-field"))?.focus();
    return;
  }
  const button = document.getElementById(KEYS[event.key]);
  if (button) {
    event.preventDefault();
    button.click();
  }
});
