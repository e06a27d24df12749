// Native dialogs: <button data-dialog="id"> opens one, [data-close] and a click beside it close it.
// One that was refused comes open: data-open. A menu closes when something else is chosen.

for (const refused of document.querySelectorAll("dialog[data-open]")) refused.showModal();

document.addEventListener("click", ({ target }) => {
  const opener = target.closest("[data-dialog]");
  if (opener) document.getElementById(opener.dataset.dialog).showModal();
  else if (target.closest("[data-close]")) target.closest("dialog")?.close();
  else if (target.matches("dialog[open]")) target.close();
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(target)) menu.open = false;
  }
});
document.addEventListener("keydown", ({ key, target }) => {
  const menu = key === "Escape" && target.closest("details.menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});
