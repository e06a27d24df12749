// <div popover data-by>: opens beside the button that opens it, above it where there is more room.

const GAP = 6;

document.addEventListener("toggle", ({ target, newState }) => {
  if (newState !== "open" || !target.matches?.("[popover][data-by]")) return;
  const opener = document.querySelector(`[popovertarget="${target.id}"]`);
  if (!opener) return;
  const by = opener.getBoundingClientRect();
  const isBelow = by.bottom + GAP + target.offsetHeight < innerHeight || by.top < innerHeight - by.bottom;
  const top = isBelow ? by.bottom + GAP : by.top - GAP - target.offsetHeight;
  const left = Math.min(by.left, innerWidth - target.offsetWidth - GAP);
  target.style.top = `${Math.max(GAP, top)}px`;
  target.style.left = `${Math.max(GAP, left)}px`;
}, true);

// htmx copies attributes onto what it swaps in, and a style attribute is refused there.
document.addEventListener("beforetoggle", ({ target, newState }) => {
  if (newState === "closed" && target.matches?.("[popover][data-by]")) target.removeAttribute("style");
}, true);

// A command closes its menu.
document.addEventListener("click", ({ target }) => {
  const item = target.closest?.("[popover][data-by] .menu-item:not(.pin)");
  item?.closest("[popover]").hidePopover();
});
