// A form that was refused shows why: its first wrong field comes into the middle of the view and
// has the focus, and a screen reader hears how many there are.

const WRONG = "[aria-invalid='true']:not([type='hidden']), .errorlist";

export function showErrors(root) {
  const wrong = [...root.querySelectorAll(WRONG)].filter((field) => field.checkVisibility());
  if (!wrong.length) return;
  const [first] = wrong;
  first.closest("details:not([open])")?.setAttribute("open", "");
  first.scrollIntoView({ block: "center" });
  if (first.matches("input, select, textarea")) first.focus({ preventScroll: true });
  announce(wrong.length === 1 ? "One field needs a correction." : `${wrong.length} fields need a correction.`);
}

function announce(text) {
  const region = document.createElement("p");
  region.className = "visually-hidden";
  region.setAttribute("role", "alert");
  document.body.append(region);
  // An alert that is there before its words is heard; one that comes with them may not be.
  requestAnimationFrame(() => { region.textContent = text; });
}

showErrors(document);
document.addEventListener("htmx:afterSwap", ({ detail }) => {
  if (detail.xhr?.status === 422) showErrors(detail.target);
});
