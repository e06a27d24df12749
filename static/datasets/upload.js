// Uploads files as soon as they are chosen or dropped, with progress; too large files are refused here.

document.addEventListener("change", (event) => {
  if (event.target.id !== "file" || !event.target.files.length) return;
  const form = event.target.form;
  const files = [...event.target.files];
  const size = files.reduce((sum, file) => sum + file.size, 0);
  const limit = Number(form.dataset.limit);
  const most = Number(form.dataset.maxFiles);
  const hint = form.querySelector("#upload-hint");
  form.querySelector("#upload-what").textContent = files.map((file) => file.name).join(", ");
  if (files.length > most) {
    hint.textContent = `Too many files: ${files.length}. The limit is ${most} per upload.`;
    return;
  }
  if (size > limit) {
    hint.textContent = `Too large: ${megabytes(size)}. The limit is ${megabytes(limit)}.`;
    return;
  }
  hint.textContent = `Uploading ${megabytes(size)}…`;
  form.classList.add("sending");
  form.requestSubmit();
});

document.addEventListener("htmx:xhr:progress", (event) => {
  const form = event.target.closest?.("#upload");
  if (!form || !event.detail.lengthComputable) return;
  const { loaded, total } = event.detail;
  form.querySelector("progress").value = (100 * loaded) / total;
  form.querySelector("#upload-hint").textContent =
    loaded < total ? `Uploading: ${megabytes(loaded)} of ${megabytes(total)}` : "Uploaded. Detecting columns…";
});

for (const name of ["dragenter", "dragover"]) mark(name, true);
for (const name of ["dragleave", "drop"]) mark(name, false);

function mark(name, over) {
  document.addEventListener(name, (event) => {
    event.target.closest?.(".dropzone")?.classList.toggle("dropzone-over", over);
  });
}

function megabytes(bytes) {
  return bytes < 1e5 ? `${Math.ceil(bytes / 1024)} KB` : `${(bytes / 1048576).toFixed(1)} MB`;
}
