// The conversation page: follows answers while they are written, and keeps the composer at hand.
//
// Text is only ever appended, as text, once a frame. When an answer ends, its place is taken by
// what the server rendered of it.

const scroller = document.querySelector("[data-scroll]");
const composer = document.querySelector("[data-composer]");
const input = composer?.querySelector("textarea");
const live = new Map(); // article -> Answer
let stuck = true; // to the end of the thread

// --- One answer being written ---------------------------------------------------------------

class Answer {
  constructor(article) {
    this.article = article;
    this.text = article.querySelector("[data-text]");
    this.reasoning = article.querySelector("[data-reasoning]");
    this.reasoningText = article.querySelector("[data-reasoning-text]");
    this.state = article.querySelector("[data-state]");
    this.pending = { text: "", reasoning: "" };
    this.frame = 0;
    this.last = null;
    this.follow();
  }

  follow() {
    const url = new URL(this.article.dataset.events, location.href);
    if (this.last !== null) url.searchParams.set("after", this.last);
    this.source = new EventSource(url);
    const on = (name, act) => this.source.addEventListener(name, (event) => {
      if (/^\d+$/.test(event.lastEventId)) this.last = event.lastEventId;
      act.call(this, JSON.parse(event.data));
    });
    on("snapshot", this.restart);
    on("queued", () => this.say("Waiting for a free slot of the server…"));
    on("progress", this.reading);
    on("reasoning", ({ text }) => this.write("reasoning", text));
    on("token", ({ text }) => this.write("text", text));
    on("done", this.end);
    // Our own event has data; without it, it is the browser's: the connection broke.
    this.source.addEventListener("error", (event) => {
      if (event.data) this.end();
      else if (this.source.readyState === EventSource.CLOSED) this.again();
      else this.say("The connection is lost. Trying again…");
    });
  }

  again() {
    this.say("The connection is lost. Trying again…");
    setTimeout(() => this.article.isConnected && this.follow(), 2000);
  }

  restart({ status, text, reasoning }) {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.pending = { text: "", reasoning: "" };
    this.text.replaceChildren();
    this.reasoningText.replaceChildren();
    if (reasoning) this.write("reasoning", reasoning);
    if (text) this.write("text", text);
    if (status === "queued") this.say("Waiting for the first token…");
  }

  reading({ total, cached, processed }) {
    if (this.text.hasChildNodes()) return;
    const toRead = total - cached;
    if (toRead <= 0 || processed >= total) return this.say("Waiting for the first token…");
    const kept = cached ? `, ${cached.toLocaleString()} of them from the cache` : "";
    this.say(`Reading the prompt: ${processed.toLocaleString()} of ${total.toLocaleString()} tokens${kept}`);
    const bar = document.createElement("progress");
    bar.max = toRead;
    bar.value = processed - cached;
    this.state.append(bar);
  }

  write(kind, text) {
    this.pending[kind] += text;
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const { text, reasoning } = this.pending;
    this.pending = { text: "", reasoning: "" };
    if (reasoning) {
      this.reasoning.hidden = false;
      append(this.reasoningText, reasoning);
    }
    if (text) append(this.text, text);
    this.say("Writing…");
    toEnd();
  }

  say(sentence) {
    if (this.state.textContent !== sentence) this.state.textContent = sentence;
  }

  async end() {
    this.source.close();
    if (this.frame) this.draw();
    try {
      await htmx.ajax("GET", this.article.dataset.fragment, { target: this.article, swap: "outerHTML" });
    } finally {
      live.delete(this.article);
      announce("The answer is complete.");
      showState();
      toEnd();
    }
  }

  leave() {
    cancelAnimationFrame(this.frame);
    this.source.close();
    live.delete(this.article);
  }
}

// A paragraph is an element of its own: the browser lays out only the one that grows.
function append(container, text) {
  const [first, ...rest] = text.split("\n\n");
  if (container.lastElementChild === null) container.append(document.createElement("div"));
  grow(container.lastElementChild, first);
  for (const paragraph of rest) {
    const element = document.createElement("div");
    grow(element, paragraph);
    container.append(element);
  }
}

function grow(element, text) {
  if (element.lastChild) element.lastChild.appendData(text);
  else element.append(document.createTextNode(text));
}

// --- The thread -------------------------------------------------------------------------------

function followNew() {
  for (const [article, answer] of live) if (!article.isConnected) answer.leave();
  for (const article of document.querySelectorAll("[data-events]")) {
    if (!live.has(article)) live.set(article, new Answer(article));
  }
  showState();
}

function toEnd() {
  if (scroller && stuck) scroller.scrollTop = scroller.scrollHeight;
}

function announce(sentence) {
  const place = document.querySelector("[data-announce]");
  if (place) place.textContent = sentence;
}

scroller?.addEventListener("scroll", () => {
  stuck = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 48;
}, { passive: true });

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id === "thread" || event.detail.target.classList.contains("answer")) {
    followNew();
    toEnd();
  }
});

function stop() {
  const headers = JSON.parse(document.body.getAttribute("hx-headers"));
  for (const answer of live.values()) {
    const sent = fetch(answer.article.dataset.stopUrl, { method: "POST", headers });
    sent.catch(() => answer.say("The workbench cannot be reached, so it was not stopped."));
  }
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && live.size) stop();
});

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});

// A browser that shows a page of its history again has closed its connections.
window.addEventListener("pageshow", (event) => event.persisted && location.reload());

// --- The composer -----------------------------------------------------------------------------

function showState() {
  if (!composer) return;
  composer.querySelector("[data-send]").hidden = live.size > 0;
  composer.querySelector("[data-stop]").hidden = live.size === 0;
}

function fit() {
  if (CSS.supports("field-sizing", "content")) return;
  input.style.height = "auto";
  input.style.height = `${input.scrollHeight}px`;
}

if (composer) {
  const draft = `draft:${input.dataset.draft}`;
  input.value ||= sessionStorage.getItem(draft) ?? "";
  fit();

  input.addEventListener("input", () => {
    sessionStorage.setItem(draft, input.value);
    fit();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (input.value.trim() && !live.size) composer.requestSubmit();
  });
  composer.querySelector("[data-stop]").addEventListener("click", stop);
  composer.addEventListener("submit", () => {
    stuck = true;
    if (!composer.hasAttribute("hx-post")) sessionStorage.removeItem(draft);
  });
  composer.addEventListener("htmx:afterRequest", (event) => {
    if (event.target !== composer || !event.detail.successful) return;
    document.getElementById("refused").replaceChildren();
    input.value = "";
    sessionStorage.removeItem(draft);
    fit();
    input.focus();
  });
  for (const suggestion of document.querySelectorAll("[data-suggestion]")) {
    suggestion.addEventListener("click", () => {
      input.value = suggestion.textContent;
      composer.requestSubmit();
    });
  }

  const preset = document.querySelector("[data-preset]");
  const presetText = document.querySelector("[data-preset-text]");
  const none = presetText?.textContent;
  const showPreset = () => {
    presetText.textContent = preset.selectedOptions[0].dataset.text ?? none;
  };
  preset?.addEventListener("change", showPreset);
  if (preset) showPreset();
  if (matchMedia("(hover: hover)").matches) input.focus();
}

followNew();
toEnd();
