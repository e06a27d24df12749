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

// A link to a part that is folded, such as #server-3 or #add-server, opens it.
function openLinked() {
  const part = document.getElementById(location.hash.slice(1));
  if (part?.localName === "dialog") {
    if (!part.open) part.showModal();
    return;
  }
  const details = part?.localName === "details" ? part : part?.querySelector("details");
  if (!details) return;
  details.open = true;
  details.scrollIntoView({ block: "nearest" });
}
window.addEventListener("hashchange", openLinked);
if (document.readyState === "complete") openLinked();
else window.addEventListener("load", () => setTimeout(openLinked));
