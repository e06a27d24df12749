// The search above the list: it hides the rows whose name does not match.

const field = document.querySelector("[data-list-find]");

function filter() {
  const wanted = field.value.trim().toLowerCase();
  const list = field.closest(".list");
  let found = 0;
  for (const group of list.querySelectorAll(".list-body ul")) {
    let here = 0;
    for (const row of group.children) {
      row.hidden = !row.querySelector(".clip").textContent.toLowerCase().includes(wanted);
      here += !row.hidden;
    }
    group.hidden = group.previousElementSibling.hidden = !here;
    found += here;
  }
  list.querySelector("[data-list-none]").hidden = found > 0;
}

field?.addEventListener("input", filter);
// The rows come again while something trains.
document.addEventListener("htmx:afterSwap", ({ detail }) => {
  if (field?.value && detail.target.id === "list-rows") filter();
});
