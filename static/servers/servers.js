// The Servers page: copying commands, and opening the part of the page that a link names.

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(source.textContent.trim());
    const said = button.firstChild.textContent;
    button.firstChild.textContent = "Copied";
    setTimeout(() => { button.firstChild.textContent = said; }, 1500);
  } catch { // without HTTPS there is no clipboard: the command is selected instead
    window.getSelection().selectAllChildren(source);
  }
});

// A link to a part that is folded, such as #add, opens it.
function openLinked() {
  const part = document.getElementById(location.hash.slice(1));
  if (part?.localName !== "details") return;
  part.open = true;
  part.scrollIntoView();
  part.querySelector("input:not([type=hidden])")?.focus({ preventScroll: true });
}
window.addEventListener("hashchange", openLinked);
// Later than the browser's own turn to the linked part, which takes the focus away again.
if (document.readyState === "complete") openLinked();
else window.addEventListener("load", () => setTimeout(openLinked));
