// The test rows behind a pair or a tile, in the side panel; the focus goes there and comes back.

/* global htmx */

let opener = null;

const panel = () => document.getElementById("rows");

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-rows]");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    open(link);
  } else if (event.target.closest("[data-rows-close]")) close();
  const fold = event.target.closest("a[data-open]");
  if (fold) document.getElementById(fold.dataset.open).open = true;
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !panel().hidden && !event.defaultPrevented) close();
});

async function open(link) {
  opener = link;
  const url = `${link.closest("[data-rows-url]").dataset.rowsUrl}?${link.dataset.rows}`;
  await htmx.ajax("GET", url, { target: "#rows", swap: "innerHTML" });
  if (opener !== link || !panel().querySelector("[data-rows-close]")) return;
  panel().hidden = false;
  panel().focus({ preventScroll: true });
}

function close() {
  panel().hidden = true;
  opener?.focus();
  opener = null;
}
