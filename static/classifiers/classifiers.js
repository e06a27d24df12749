// Tables that sort by a column, also in fragments that are loaded later.

import "../core/copy_button.js";

document.addEventListener("click", (event) => {
  const head = event.target.closest("table[data-sortable] th button")?.parentElement;
  if (head) sort(head);
});

function sort(head) {
  const table = head.closest("table");
  const column = [...head.parentElement.children].indexOf(head);
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of head.parentElement.children) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => compare(a.cells[column], b.cells[column]) * (down ? -1 : 1));
  table.tBodies[0].append(...rows);
}

function compare(a, b) {
  if (a.dataset.value === undefined) return a.textContent.trim().localeCompare(b.textContent.trim());
  return number(a) - number(b);
}

// What was not measured comes first, as the worst.
function number(cell) {
  return cell.dataset.value === "" ? -1 : Number(cell.dataset.value);
}
