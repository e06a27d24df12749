// The table of an import: one column is the text, J and K walk through the suspicious rows.

const SINGLE = new Set(["text", "label", "label2", "split"]);

// Before the form asks for the new table: the column that had the role gets the old one of this.
document.addEventListener("change", (event) => {
  if (event.target.hasAttribute?.("data-local")) event.stopPropagation();
  if (event.target.name !== "role") return;
  const before = event.target.querySelector("option[selected]")?.value ?? "keep";
  for (const other of document.querySelectorAll("select[name=role]")) {
    if (other !== event.target && other.value === event.target.value && SINGLE.has(other.value)) other.value = before;
  }
}, true);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox], [type=radio]), select")) return;
  const step = { j: 1, k: -1 }[event.key.toLowerCase()];
  if (!step) return;
  const rows = [...document.querySelectorAll(".import-table tr:has(.suspect)")].filter((row) => row.offsetParent);
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement);
  const next = at < 0 ? (step > 0 ? 0 : rows.length - 1) : (at + step + rows.length) % rows.length;
  rows[next].focus({ preventScroll: true });
  rows[next].scrollIntoView({ block: "center" });
});
