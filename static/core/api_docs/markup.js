// What the markup of Swagger UI lacks for keyboards and screen readers, put right as it is drawn.

const page = document.getElementById("swagger-ui");

function mend() {
  // A link in a button cannot be reached; the button does the same, and writes the address too.
  for (const link of page.querySelectorAll(".opblock-summary-control a[href]")) link.removeAttribute("href");
  // The title is h1, and what stands under it begins with h3.
  for (const heading of page.querySelectorAll("h3, h4, h5, h6")) {
    heading.setAttribute("aria-level", Number(heading.tagName[1]) - 1);
  }
  for (const table of page.querySelectorAll("table.responses-table")) {
    const of = table.closest(".opblock").querySelectorAll(".opblock-summary-method, .opblock-summary-path");
    table.setAttribute("aria-label", ["Responses of", ...[...of].map((one) => one.textContent)].join(" "));
  }
  for (const code of page.querySelectorAll("pre.microlight")) code.tabIndex = 0; // it scrolls sideways
}

new MutationObserver(mend).observe(page, { childList: true, subtree: true });
