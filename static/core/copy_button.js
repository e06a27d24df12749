// <button data-copy="id">: copies what the element of that id shows.

import { copyFrom } from "./clipboard.js";

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-copy]");
  if (button) copyFrom(button, document.getElementById(button.dataset.copy).textContent.trim());
});
