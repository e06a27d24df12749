// The settings page: the list follows the scroll, the look changes at once.

const rows = [...document.querySelectorAll(".list-body a[href^='#']")];
const sections = rows.map((row) => document.getElementById(row.hash.slice(1)));

function mark(section) {
  for (const row of rows) {
    if (row.hash === `#${section.id}`) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  }
}

// The section under a line in the upper third of the view is the one that is read.
const reading = new IntersectionObserver((seen) => {
  const here = seen.find(({ isIntersecting }) => isIntersecting);
  if (here) mark(here.target);
}, { rootMargin: "-20% 0px -79% 0px" });
for (const section of sections) reading.observe(section);

// The last sections may never reach that line: who chose one sees it marked.
addEventListener("hashchange", () => {
  const chosen = sections.find((section) => `#${section.id}` === location.hash);
  if (chosen) mark(chosen);
  document.getElementById("list").hidePopover?.();
});

const { at } = document.querySelector(".settings").dataset;
if (at && !location.hash) document.getElementById(at).scrollIntoView();

document.querySelector("[data-appearance]").addEventListener("change", ({ target }) => {
  const root = document.documentElement.dataset;
  if (target.name === "density") root.density = target.value;
  else if (target.name === "text_size") root.text = target.value;
  else if (target.value === "system") delete root.theme;
  else root.theme = target.value;
});
