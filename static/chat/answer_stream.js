// One answer while it is being written: its events in, text on the page.
//
// Text is only ever appended, as text, once a frame. When an answer ends, its place is taken by
// what the server rendered of it.

import { Calls } from "./tool_calls.js";
import { append } from "./live_text.js";

const QUIET_MS = 200; // an answer that is being written says more within this

export class AnswerStream {
  // `grew` is called after text was drawn, `ended` when the finished answer is in its place.
  constructor(article, { grew, ended }) {
    this.article = article;
    this.grew = grew;
    this.ended = ended;
    this.text = article.querySelector("[data-text]");
    this.calls = new Calls(article);
    this.reasoning = article.querySelector("[data-reasoning]");
    this.reasoningTitle = this.reasoning.querySelector("summary");
    this.reasoningText = article.querySelector("[data-reasoning-text]");
    this.sentence = article.querySelector("[data-state]").firstChild;
    this.bar = article.querySelector("[data-state] progress");
    this.answerNow = article.querySelector("[data-answer-now]");
    this.answerNow.addEventListener("click", () => this.endThinking());
    this.pending = { text: "", reasoning: "" };
    this.frame = 0;
    this.last = null;
    this.heard = 0;
    this.follow();
  }

  follow() {
    const url = new URL(this.article.dataset.events, location.href);
    if (this.last !== null) url.searchParams.set("after", this.last);
    this.source = new EventSource(url);
    const on = (name, act) => this.source.addEventListener(name, (event) => {
      if (/^\d+$/.test(event.lastEventId)) this.last = event.lastEventId;
      this.heard = performance.now();
      act.call(this, JSON.parse(event.data));
    });
    on("snapshot", this.restart);
    on("queued", ({ reason }) => this.say(reason ?? "Waiting for a free slot…"));
    on("loading", this.loading);
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
      else this.say("Connection lost. Reconnecting…");
    });
  }

  // Who has logged out, or whose answer is gone, would ask for ever.
  async again() {
    this.say("Connection lost. Reconnecting…");
    await new Promise((resolve) => setTimeout(resolve, 2000));
    if (!this.article.isConnected) return;
    const found = await fetch(this.article.dataset.events.replace(/\/events$/, "")).catch(() => null);
    if (!this.article.isConnected) return;
    if (found?.status === 401 || found?.status === 403) this.say("You are logged out. Log in and reload the page.");
    else if (found?.status === 404) this.say("This answer was deleted.");
    else this.follow();
  }

  // Asks anew if it is quiet: a connection that died in a sleep looks as if nothing were said.
  renew() {
    if (performance.now() - this.heard < QUIET_MS) return;
    this.source.close();
    this.follow();
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

  // A server that does not say how far it is: then the seconds tell that somebody is at work.
  loading({ share, reason }) {
    if (this.said()) return;
    if (reason) return this.say(reason, share);
    if (share !== undefined) return this.say(`Loading the model: ${Math.round(share * 100)}%`, share);
    this.loadingSince ??= performance.now();
    const tell = () => {
      const seconds = Math.round((performance.now() - this.loadingSince) / 1000);
      this.show(`Loading the model${seconds ? ` (${seconds} s)` : ""}…`);
    };
    clearInterval(this.clock);
    this.clock = setInterval(tell, 1000);
    tell();
  }

  reading({ total, cached, processed }) {
    if (this.said()) return;
    const toRead = total - cached;
    if (toRead <= 0 || processed >= total) return this.say("Waiting for the first token…");
    const kept = cached ? ` (${cached.toLocaleString()} cached)` : "";
    this.say(
      `Processing the prompt: ${processed.toLocaleString()} of ${total.toLocaleString()} tokens${kept}`,
      (processed - cached) / toRead,
    );
  }

  // Whether there is something to read already; in a later round of calls, above it.
  said() {
    return this.text.hasChildNodes() || this.pending.text !== "";
  }

  called(call) {
    if (this.pending.text || this.pending.reasoning) this.draw();
    this.text = this.calls.show(call, this.text);
    this.answerNow.hidden = true;
    if (this.calls.some("waiting")) this.say("Waiting for your approval.");
    else if (this.calls.some("running")) this.say("Running a tool…");
    else this.say("Waiting for the first token…");
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
    this.titleThoughts(reasoning !== "", text.trim() !== "");
    if (reasoning || text) this.answerNow.hidden = text.trim() !== "";
    const said = this.text.hasChildNodes() ? text : text.replace(/^\n+/, "");
    if (said) append(this.text, said);
    if (said) this.say("Writing…");
    else if (reasoning.trim()) this.say(this.hasThought ? "Thinking…" : "");
    this.grew();
  }

  // How long it thinks, as far as this page has seen it, until it says something.
  titleThoughts(isThinking, isSaying) {
    if (this.hasThought || !(isThinking || isSaying)) return;
    this.thoughtSince ??= performance.now();
    const seconds = Math.round((performance.now() - this.thoughtSince) / 1000);
    this.hasThought = isSaying;
    if (!isSaying) this.reasoningTitle.textContent = seconds ? `Thinking for ${seconds} s…` : "Thinking…";
    else this.reasoningTitle.textContent = seconds ? `Thought for ${seconds} s` : "Thinking";
  }

  async endThinking() {
    const headers = JSON.parse(document.body.getAttribute("hx-headers"));
    this.answerNow.disabled = true;
    const sent = await fetch(this.article.dataset.answerNowUrl, { method: "POST", headers }).catch(() => null);
    if (!sent?.ok) this.say("Workbench cannot be reached. The model continues thinking.");
    this.answerNow.disabled = false;
  }

  // Below the text; with a bar where it is known which share, 0 to 1, of something is done.
  say(sentence, share) {
    clearInterval(this.clock);
    this.show(sentence, share);
  }

  show(sentence, share) {
    if (this.sentence.data !== sentence) this.sentence.data = sentence;
    this.bar.hidden = share === undefined;
    if (share !== undefined) this.bar.value = share;
  }

  async end() {
    this.source.close();
    clearInterval(this.clock);
    if (this.frame) this.draw();
    try {
      await htmx.ajax("GET", this.article.dataset.fragment, { target: this.article, swap: "outerHTML" });
    } finally {
      this.ended(this);
    }
  }

  leave() {
    clearInterval(this.clock);
    cancelAnimationFrame(this.frame);
    this.source.close();
  }
}
