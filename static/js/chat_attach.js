// Files for the next question: chosen, pasted or dropped. Each is sent at once, so that its size
// in tokens is seen before the question goes.

const form = document.querySelector("[data-composer]");
const place = form?.querySelector("[data-attachments]");
const chooser = form?.querySelector("[data-files]");
const room = document.querySelector(".chat-room");

async function add(files) {
  for (const file of files) {
    const waiting = document.createElement("span");
    waiting.className = "attachment faint";
    waiting.textContent = `${file.name}…`;
    place.append(waiting);
    const body = new FormData();
    body.append("file", file);
    body.append("conversation", place.dataset.conversation ?? "");
    const headers = JSON.parse(document.body.getAttribute("hx-headers"));
    const html = await fetch(place.dataset.attachments, { method: "POST", headers, body })
      .then(async (answer) => {
        if (answer.ok) return [place, await answer.text()];
        if (answer.status === 422) return [document.getElementById("refused"), await answer.text()];
        throw new Error(answer.status);
      })
      .catch(() => [null, null]);
    show(waiting, ...html);
  }
}

function show(waiting, where, html) {
  const made = document.createRange().createContextualFragment(html ?? "");
  if (where === place) {
    const chip = made.firstElementChild;
    waiting.replaceWith(made);
    htmx.process(chip);
  } else if (where) {
    waiting.remove();
    where.replaceChildren(made);
  } else {
    waiting.textContent = "The file did not arrive. Try again.";
    setTimeout(() => waiting.remove(), 5000);
  }
}

if (place) {
  form.querySelector("[data-attach]").addEventListener("click", () => chooser.click());
  chooser.addEventListener("change", async () => {
    const files = [...chooser.files];
    chooser.value = "";
    await add(files);
  });
  form.querySelector("textarea").addEventListener("paste", (event) => {
    const files = [...event.clipboardData.files];
    if (!files.length) return;
    event.preventDefault();
    add(files);
  });
  room.addEventListener("dragover", (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    room.classList.add("dropping");
  });
  room.addEventListener("dragleave", (event) => {
    if (!room.contains(event.relatedTarget)) room.classList.remove("dropping");
  });
  room.addEventListener("drop", (event) => {
    room.classList.remove("dropping");
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    add([...event.dataTransfer.files]);
  });
  form.addEventListener("htmx:afterRequest", (event) => {
    if (event.target === form && event.detail.successful) place.replaceChildren();
  });
}
