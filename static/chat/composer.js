// The composer: the field, its draft, Send and Stop.
//
// The thread tells with "chat:answering" how many answers are being written; "chat:stop" asks it to
// stop them.

const form = document.querySelector("[data-composer]");
const input = form?.querySelector("textarea");
let answering = 0;

function fit() {
  if (CSS.supports("field-sizing", "content")) return;
  input.style.height = "auto";
  input.style.height = `${input.scrollHeight}px`;
}

if (form) {
  const draft = `draft:${input.dataset.draft}`;
  input.value ||= localStorage.getItem(draft) ?? "";
  fit();

  input.addEventListener("input", () => {
    localStorage.setItem(draft, input.value);
    fit();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (input.value.trim() && !answering) form.requestSubmit();
  });
  document.addEventListener("chat:answering", ({ detail }) => {
    answering = detail.count;
    form.querySelector("[data-send]").hidden = answering > 0;
    form.querySelector("[data-stop]").hidden = answering === 0;
  });
  form.querySelector("[data-stop]").addEventListener("click", () => document.dispatchEvent(new Event("chat:stop")));
  // A first question's draft goes when its conversation is there: if it is refused, it is not lost.
  const begun = sessionStorage.getItem("begun");
  sessionStorage.removeItem("begun");
  if (begun && form.hasAttribute("hx-post")) {
    for (const kind of ["draft", "files"]) localStorage.removeItem(`${kind}:${begun}`);
  }
  form.addEventListener("submit", () => {
    if (!form.hasAttribute("hx-post")) sessionStorage.setItem("begun", input.dataset.draft);
  });
  // A conversation may have gone on in another window: the server is told what this one shows.
  form.addEventListener("htmx:configRequest", ({ target, detail }) => {
    const last = [...document.querySelectorAll("#thread .question, #thread .answer")].at(-1);
    if (target === form) detail.parameters.after = last?.id.split("-")[1] ?? "";
  });
  form.addEventListener("htmx:afterRequest", (event) => {
    // What was refused is swapped in, so htmx calls it successful: the text stays.
    if (event.target !== form || !event.detail.successful || event.detail.xhr.status >= 400) return;
    document.getElementById("refused").replaceChildren();
    input.value = "";
    localStorage.removeItem(draft);
    fit();
    input.focus();
  });
  for (const suggestion of document.querySelectorAll("[data-suggestion]")) {
    suggestion.addEventListener("click", () => {
      input.value = suggestion.textContent.trim();
      form.requestSubmit();
    });
  }

  const preset = document.querySelector("[data-preset]");
  const presetText = document.querySelector("[data-preset-text]");
  const none = presetText?.textContent.trim();
  const showPreset = () => {
    presetText.textContent = preset.selectedOptions[0].dataset.text ?? none;
  };
  preset?.addEventListener("change", showPreset);
  if (preset) showPreset();
  // A browser that goes back brings back what was picked, but not what the page said of it.
  window.addEventListener("load", () => {
    for (const name of ["model", "preset"]) {
      const picked = form.querySelector(`select[name=${name}]`);
      if (picked?.value) picked.dispatchEvent(new Event("change", { bubbles: true }));
    }
  });
  if (matchMedia("(hover: hover)").matches) input.focus();
}
