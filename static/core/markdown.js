// Finishes rendered Markdown: formulas, and a copy button on code.

import { copyFrom } from "./clipboard.js";

const KATEX = "../vendor/katex/katex-0.19.1.min";

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
    draw(target, await katex());
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

function look() {
  for (const formula of document.querySelectorAll("code.math:not([data-seen])")) {
    formula.dataset.seen = "";
    near.observe(formula);
  }
}

document.addEventListener("htmx:afterSettle", look);
look();

// --- Code: its button is made when somebody comes near -------------------------------------------

function offer({ target }) {
  const caption = target.closest?.("figure.code")?.querySelector("figcaption");
  if (!caption || caption.querySelector("button")) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "step";
  button.textContent = "Copy";
  button.addEventListener("click", () => {
    copyFrom(button, caption.parentElement.querySelector("code").textContent);
  });
  caption.append(button);
}

document.addEventListener("pointerover", offer);
document.addEventListener("focusin", offer);
