// Attachments of the next message: chosen, pasted or dropped. Each is uploaded at once, so that its
// size in tokens is known before the message is sent. Until then it is kept with the draft.

const form = document.querySelector("[data-composer]");
const place = form?.querySelector("[data-attachments]");
const chooser = form?.querySelector("[data-files]");
const room = document.querySelector(".chat-room");

const refused = document.getElementById("refused");
const draft = `files:${form?.querySelector("textarea").dataset.draft}`;

function keep() {
  const ids = [...place.querySelectorAll("[name=attachment]")].map((field) => field.value);
  if (ids.length) localStorage.setItem(draft, ids.join(" "));
  else localStorage.removeItem(draft);
}

// Who is to read the files: whether it sees pictures is said beside them.
function reader() {
  const asked = [["conversation", place.dataset.conversation ?? ""]];
  for (const name of ["model", "preset"]) {
    const choice = form.querySelector(`select[name=${name}]`);
    if (choice) asked.push([name, choice.value]);
  }
  return asked;
}

// Shows what waits with the draft: after a reload, and anew for another model.
async function bringBack() {
  const ids = localStorage.getItem(draft)?.split(" ");
  if (!ids) return;
  const asked = new URLSearchParams([...ids.map((id) => ["id", id]), ...reader()]);
  const answer = await fetch(`${place.dataset.attachments}?${asked}`).catch(() => null);
  if (!answer?.ok) return;
  for (const chip of place.querySelectorAll("[data-attachment]")) chip.remove();
  place.prepend(document.createRange().createContextualFragment(await answer.text()));
  htmx.process(place);
  keep();
}

async function add(files) {
  refused.replaceChildren();
  for (const file of files) {
    const waiting = document.createElement("span");
    waiting.className = "attachment faint";
    waiting.textContent = `${file.name}…`;
    place.append(waiting);
    const body = new FormData();
    body.append("file", file);
    for (const [name, value] of reader()) body.append(name, value);
    const headers = JSON.parse(document.body.getAttribute("hx-headers"));
    const html = await fetch(place.dataset.attachments, { method: "POST", headers, body })
      .then(async (answer) => {
        if (answer.ok) return [place, await answer.text()];
        const text = await answer.text();
        if ([413, 422, 429].includes(answer.status)) return [refused, inNotice(answer, text)];
        throw new Error(answer.status);
      })
      .catch(() => [null, null]);
    show(waiting, ...html);
  }
}

// Some refusals are a sentence, others the notice with it.
function inNotice(answer, text) {
  if (!answer.headers.get("Content-Type")?.startsWith("text/plain")) return text;
  const notice = document.createElement("p");
  notice.className = "notice notice-warn";
  notice.textContent = text;
  return notice.outerHTML;
}

function show(waiting, where, html) {
  const made = document.createRange().createContextualFragment(html ?? "");
  if (where === place) {
    const chip = made.firstElementChild;
    waiting.replaceWith(made);
    htmx.process(chip);
    keep();
  } else if (where) {
    waiting.remove();
    where.append(made);
  } else {
    waiting.textContent = "Upload failed. Try again.";
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
    const { successful, xhr } = event.detail;
    if (event.target === form && successful && xhr.status !== 422) place.replaceChildren();
    keep();
  });
  form.addEventListener("change", (event) => event.target.matches("select") && bringBack());
  // The panel has changed the conversation's model.
  document.addEventListener("htmx:oobAfterSwap", ({ detail }) => {
    if (detail.target.id === "model-state") bringBack();
  });
  bringBack();
}
