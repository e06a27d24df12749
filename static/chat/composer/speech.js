// Speech by the browser's own means, where it has them; otherwise the buttons stay hidden.

const Recognition = window.SpeechRecognition ?? window.webkitSpeechRecognition;
const voice = window.speechSynthesis;

// --- Dictating: what is heard goes where the cursor is ----------------------------------------

const button = document.querySelector("[data-dictate]");
const input = document.querySelector("[data-composer] textarea");
let listening = null;

const PROBLEMS = {
  "not-allowed": "Microphone access is blocked. Allow it in the address bar. Other machines need HTTPS.",
  "audio-capture": "No microphone found.",
  network: "The browser’s speech service is not available.",
};

function dictate() {
  if (listening) return listening.stop();
  listening = new Recognition();
  listening.lang = navigator.language;
  listening.continuous = true;
  listening.addEventListener("result", ({ results, resultIndex }) => {
    for (const result of [...results].slice(resultIndex)) {
      if (result.isFinal) insert(result[0].transcript.trim());
    }
  });
  listening.addEventListener("error", ({ error }) => {
    if (PROBLEMS[error]) refuse(PROBLEMS[error]);
  });
  listening.addEventListener("end", () => {
    listening = null;
    button.setAttribute("aria-pressed", "false");
  });
  button.setAttribute("aria-pressed", "true");
  listening.start();
}

function insert(text) {
  if (!text) return;
  const before = input.value.slice(0, input.selectionStart);
  const gap = before && !/\s$/.test(before) ? " " : "";
  input.setRangeText(gap + text, input.selectionStart, input.selectionEnd, "end");
  input.dispatchEvent(new Event("input", { bubbles: true }));
}

function refuse(sentence) {
  const said = document.createElement("p");
  said.className = "notice notice-warn";
  said.textContent = sentence;
  document.getElementById("refused").replaceChildren(said);
}

if (button && Recognition) {
  button.hidden = false;
  button.addEventListener("click", dictate);
  button.closest("form").addEventListener("submit", () => listening?.stop());
}

// --- Reading aloud: sentence by sentence, since browsers break off long texts -----------------

let reading = null; // the button of what is being read

function silence() {
  voice.cancel();
  reading?.setAttribute("aria-pressed", "false");
  reading = null;
}

function sentencesOf(article) {
  const parts = [...article.querySelectorAll("[data-message-text]")].flatMap((said) => {
    const copy = said.cloneNode(true);
    for (const skipped of copy.querySelectorAll("figure.code, pre, .math-shown")) skipped.remove();
    for (const end of copy.querySelectorAll("br")) end.replaceWith("\n");
    for (const block of copy.querySelectorAll("p, li, summary, h1, h2, h3, h4, td, th")) block.append("\n");
    return copy.textContent.split(/(?<=[.!?。])\s+|\n+/);
  });
  return parts.map((part) => part.trim()).filter(Boolean);
}

function readAloud(pressed) {
  const again = pressed === reading;
  silence();
  if (again) return;
  reading = pressed;
  pressed.setAttribute("aria-pressed", "true");
  const sentences = sentencesOf(pressed.closest("article"));
  sentences.forEach((sentence, index) => {
    const utterance = new SpeechSynthesisUtterance(sentence);
    if (index === sentences.length - 1) {
      utterance.addEventListener("end", () => reading === pressed && silence());
    }
    voice.speak(utterance);
  });
  if (!sentences.length) silence();
}

if (voice) {
  document.documentElement.classList.add("can-speak");
  document.addEventListener("click", ({ target }) => {
    const pressed = target.closest("[data-speak]");
    if (pressed) readAloud(pressed);
  });
  window.addEventListener("pagehide", () => voice.cancel());
}
