// Choosing or dropping a file sends it at once, with its progress; one that is too large stays here.

document.addEventListener("change", (event) => {
  if (event.target.id !== "file" || !event.target.files.length) return;
  const form = event.target.form;
  const file = event.target.files[0];
  const limit = Number(form.dataset.limit);
  form.querySelector("#upload-what").textContent = file.name;
  const hint = form.querySelector("#upload-hint");
  if (file.size > limit) {
    hint.textContent = `This file has ${megabytes(file.size)}, at most ${megabytes(limit)} can be sent.`;
    return;
  }
  hint.textContent = `Sending ${megabytes(file.size)} …`;
  form.requestSubmit();
});

document.addEventListener("htmx:xhr:progress", (event) => {
  const bar = event.target.querySelector?.("progress");
  if (!bar || !event.detail.lengthComputable) return;
  bar.hidden = false;
  bar.value = (100 * event.detail.loaded) / event.detail.total;
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
