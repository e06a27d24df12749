// Completes rendered Markdown: formulas, and the buttons of code and tables.

import { copyFrom } from "../clipboard.js";

const KATEX = "../../vendor/katex/katex-0.19.1.min";

// --- Formulas: KaTeX is fetched by the first page that has one, and draws what comes into view ---

let loading = null;

function katex() {
  loading ??= new Promise((resolve, reject) => {
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.href = new URL(`${KATEX}.css`, import.meta.url);
    const script = document.createElement("script");
    script.src = new URL(`${KATEX}.js`, import.meta.url);
    script.addEventListener("load", () => resolve(window.katex));
    script.addEventListener("error", reject);
    document.head.append(style, script);
  });
  return loading;
}

const near = new IntersectionObserver(async (entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    if (!target.matches("figcaption")) draw(target, await katex());
    else if (!target.querySelector(".code-buttons")) offerCode(target);
  }
}, { rootMargin: "600px" });

function draw(element, { render }) {
  const block = element.classList.contains("math-block");
  const shown = document.createElement("span");
  shown.className = block ? "math-shown math-shown-block" : "math-shown";
  if (block) shown.tabIndex = 0; // it may scroll
  // What a model wrote may neither link, nor load, nor grow without end.
  const limits = { throwOnError: false, trust: false, strict: "ignore", maxExpand: 200, maxSize: 20 };
  render(element.textContent, shown, { displayMode: block, ...limits });
  element.replaceWith(shown);
}

// --- Code and tables: their buttons ---------------------------------------------------------------

const ICONS = new URL("../../img/icons.svg", import.meta.url);

function button(name, icon, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "code-button";
  if (icon) {
    made.innerHTML = '<svg class="icon" aria-hidden="true"><use></use></svg>';
    made.querySelector("use").setAttribute("href", `${ICONS}#${icon}`);
  }
  if (icon === "wrap") made.setAttribute("aria-label", name);
  else made.append(Object.assign(document.createElement("span"), { textContent: name }));
  made.addEventListener("click", () => act(made));
  return made;
}

function offerCode(caption) {
  const figure = caption.parentElement;
  const wrap = button("Wrap lines", "wrap", () => {
    wrap.setAttribute("aria-pressed", String(figure.classList.toggle("wrapped")));
  });
  wrap.setAttribute("aria-pressed", "false");
  wrap.title = "Wrap lines";
  const copy = button("Copy", "copy", () => copyFrom(copy, figure.querySelector("code").textContent));
  const buttons = document.createElement("span");
  buttons.className = "code-buttons";
  buttons.append(wrap, copy);
  caption.append(buttons);
}

function offerTable(figure) {
  const cells = () => [...figure.querySelectorAll("tr")].map((row) => [...row.cells].map(textOf));
  const buttons = document.createElement("span");
  buttons.className = "table-buttons";
  buttons.append(
    button("Copy", "", (made) => copyFrom(made, cells().map((row) => row.join("\t")).join("\n"))),
    button("CSV", "", () => save("table.csv", cells().map((row) => row.map(quoted).join(",")).join("\r\n"))),
  );
  figure.append(buttons);
}

// Of a formula its TeX, not all that KaTeX makes of it.
function textOf(cell) {
  const copy = cell.cloneNode(true);
  for (const shown of copy.querySelectorAll(".math-shown")) {
    shown.replaceWith(shown.querySelector("annotation")?.textContent ?? shown.textContent);
  }
  return copy.textContent.trim();
}

const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

function save(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

// --- What comes into view --------------------------------------------------------------------------

const FORMULA = "code.math:not([data-seen])";
const CODE = "figure.code > figcaption:not(:has(.code-buttons))";

// Completes a block that has just been written: a formula does not show as TeX first.
export function complete(block) {
  const find = (selector) => (block.matches(selector) ? [block] : block.querySelectorAll(selector));
  for (const formula of find(FORMULA)) {
    formula.dataset.seen = "";
    if (window.katex) draw(formula, window.katex);
    else katex().then((loaded) => formula.isConnected && draw(formula, loaded));
  }
  if (block.matches("figure.code, :has(figure.code)")) find(CODE).forEach(offerCode);
}

function look() {
  for (const element of document.querySelectorAll(`${FORMULA}, ${CODE}:not([data-seen])`)) {
    element.dataset.seen = "";
    near.observe(element);
  }
}

document.addEventListener("htmx:afterSettle", look);
look();

function offer({ target }) {
  const table = target.closest?.("figure.table");
  if (table && !table.querySelector(".table-buttons")) offerTable(table);
}

document.addEventListener("pointerover", offer);
document.addEventListener("focusin", offer);
