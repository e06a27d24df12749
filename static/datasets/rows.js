// The table of rows: selecting, undo with Ctrl+Z, and an address that follows the filters.

document.addEventListener("change", (event) => {
  const list = event.target.closest("#row-list");
  if (!list || event.target.type !== "checkbox") return;
  if (event.target.matches("[data-tick-all]")) {
    for (const box of boxes(list)) box.checked = event.target.checked;
  }
  if (event.target.matches("[data-tick-all], [data-matching], [name=row]")) show(list);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "z" || !(event.ctrlKey || event.metaKey) || event.shiftKey) return;
  if (event.target.closest("input, textarea, select")) return; // the browser undoes typing there
  const form = document.getElementById("undo");
  if (!form) return;
  event.preventDefault();
  form.requestSubmit();
});

// Enter in a label gives it, as leaving the field does.
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches(".label-input")) {
    event.preventDefault();
    event.target.blur();
  }
});

document.addEventListener("htmx:afterSwap", (event) => {
  const list = event.target.closest?.("#examples");
  if (!list || !event.detail.requestConfig.path.includes("/examples/")) return;
  const form = document.querySelector("[data-filters]");
  const address = new URL(event.detail.pathInfo.finalRequestPath, location.href);
  if (!address.pathname.endsWith("/examples/")) return;
  const kept = new URLSearchParams([...address.searchParams].filter(([, value]) => value));
  const query = kept.toString();
  history.replaceState(null, "", form.getAttribute("action") + (query ? `?${query}` : ""));
});

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

function boxes(list) {
  return list.querySelectorAll("[name=row]");
}

function show(list) {
  const all = [...boxes(list)];
  const ticked = all.filter((box) => box.checked).length;
  const matching = list.querySelector("[data-matching]")?.checked ?? false;
  const words = ticked ? `${ticked} selected` : "None selected";
  list.querySelector("[data-selected-count]").textContent = matching ? "All, on every page" : words;
  list.querySelector("#bulk fieldset").disabled = !ticked && !matching;
  const tickAll = list.querySelector("[data-tick-all]");
  tickAll.checked = ticked > 0 && ticked === all.length;
  tickAll.indeterminate = ticked > 0 && ticked < all.length;
}
