// Files dropped on a project's documents are uploaded as if they were chosen.

const list = () => document.getElementById("project-documents");
const isOver = (event) => list()?.contains(event.target) && event.dataTransfer?.types.includes("Files");

addEventListener("dragover", (event) => {
  list()?.classList.toggle("is-dropping", Boolean(isOver(event)));
  if (isOver(event)) event.preventDefault();
});

addEventListener("drop", (event) => {
  if (!isOver(event)) return;
  event.preventDefault();
  list().classList.remove("is-dropping");
  const chooser = list().querySelector("[data-document-files]");
  chooser.files = event.dataTransfer.files;
  chooser.dispatchEvent(new Event("change", { bubbles: true }));
});
