// Values from elsewhere: people that the model invents, rows of a file.

const MAX_FILE = 4_000_000; // bytes

export async function invent(found, button, editor) {
  const said = found.querySelector("[data-status-text]");
  const body = new FormData();
  body.set("about", found.querySelector("[data-key=about]").value);
  body.set("count", found.querySelector("[data-count]").value);
  for (const name of ["target", "thinking", "csrfmiddlewaretoken"]) body.set(name, editor.elements[name].value);
  button.disabled = true;
  said.textContent = "";
  try {
    const answer = await (await fetch(editor.dataset.personas, { method: "POST", body })).json();
    if (answer.problem) said.textContent = answer.problem;
    else found.querySelector("[data-key=values]").value = answer.values.join("\n");
  } catch {
    said.textContent = "Workbench did not respond. Try again.";
  }
  button.disabled = false;
}

export async function upload(input) {
  const [file] = input.files;
  const found = input.closest("[data-column]");
  const format = { csv: "csv", tsv: "csv", jsonl: "jsonl", json: "jsonl", md: "document" }[file.name.split(".").pop().toLowerCase()];
  const said = found.querySelector("[data-status-text]");
  said.textContent = "";
  if (file.size > MAX_FILE) {
    said.textContent = "The file is larger than 4 MB. Import it as a dataset and use that as the source.";
    return;
  }
  const start = await file.slice(0, 5).text();
  if (start.startsWith("%PDF-") || start.startsWith("PK\u0003\u0004")) {
    const kind = start.startsWith("%") ? "PDF" : "Word, Excel, EPUB or zip";
    said.textContent = `“${file.name}” is a ${kind} file, not text. Copy the text out of it, or save it as .txt or .md.`;
    input.value = "";
    return;
  }
  if (format) found.querySelector("[data-key=format]").value = format;
  found.querySelector("[data-key=text]").value = await file.text();
}
