// One answer while it is being written: its events in, text on the page.
//
// Text is only ever appended, as text, once a frame. When an answer ends, its place is taken by
// what the server rendered of it.

import { Calls } from "./chat_tools.js";

export class AnswerStream {
  // `grew` is called after text was drawn, `ended` when the finished answer is in its place.
  constructor(article, { grew, ended }) {
    this.article = article;
    this.grew = grew;
    this.ended = ended;
    this.text = article.querySelector("[data-text]");
    this.calls = new Calls(article);
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
    on("tool_call", this.called);
    on("tool_result", this.called);
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

  restart({ status, text, reasoning, calls = [] }) {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.pending = { text: "", reasoning: "" };
    this.text = this.calls.clear();
    this.text.replaceChildren();
    this.reasoningText.replaceChildren();
    if (reasoning) this.write("reasoning", reasoning);
    // Positions are counted in characters, of which JavaScript may see two.
    const characters = calls.length ? Array.from(text) : null;
    let from = 0;
    for (const call of calls) {
      if (call.at > from) this.write("text", characters.slice(from, call.at).join(""));
      from = Math.max(from, call.at);
      this.called(call);
    }
    const rest = characters ? characters.slice(from).join("") : text;
    if (rest) this.write("text", rest);
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

  called(call) {
    if (this.pending.text || this.pending.reasoning) this.draw();
    this.text = this.calls.show(call, this.text);
    if (call.state === "waiting") this.say("A call waits for you.");
    else if (call.state === "running") this.say("A tool is running…");
    this.grew();
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
    const said = this.text.hasChildNodes() ? text : text.replace(/^\n+/, "");
    if (said) append(this.text, said);
    if (said || reasoning.trim()) this.say("Writing…");
    this.grew();
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
      this.ended(this);
    }
  }

  leave() {
    cancelAnimationFrame(this.frame);
    this.source.close();
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
