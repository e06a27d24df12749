// A model file has gigabytes: only its beginning, which holds the header, is sent. On a phone the
// plan is below the form: it comes into view.

const SENT_BYTES = 9 * 1024 * 1024;

document.addEventListener("change", (event) => {
  const input = event.target;
  if (!input.matches("input[type=file][data-header-only]")) return;
  const [file] = input.files;
  input.form.elements.file_bytes.value = file ? file.size : "";
  if (!file || file.size <= SENT_BYTES) return;
  const transfer = new DataTransfer();
  transfer.items.add(new File([file.slice(0, SENT_BYTES)], file.name));
  input.files = transfer.files;
});

document.addEventListener("htmx:afterSwap", ({ target }) => {
  if (target.id !== "plan-result") return;
  if (target.getBoundingClientRect().top > window.innerHeight / 2) target.scrollIntoView();
});
