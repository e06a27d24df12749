// What cannot be undone is asked about first. The buttons are replaced while the job runs, so one
// listener stands above them.

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});
