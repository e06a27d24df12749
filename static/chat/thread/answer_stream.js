// One answer while it is being written: its events in, typeset text on the page.
//
// At its end the text stays where it is: the server is asked only for what comes below it. If the
// finished text differs (an answer that is JSON, a link whose address came later), all is replaced.

import { Calls } from "./tool_calls.js";
import { LiveBlocks } from "./live_blocks.js";
import { Progress } from "./progress.js";
import { Thought } from "./thought.js";

const QUIET_MS = 200; // an answer that is being written says more within this

export class AnswerStream {
  // `grew` is called after text was shown, `ended` when the finished answer is in its place.
  constructor(article, { grew, ended }) {
    this.article = article;
    this.grew = grew;
    this.ended = ended;
    this.foot = article.querySelector("[data-state]");
    this.progress = new Progress(this.foot);
    this.parts = [new LiveBlocks(article.querySelector("[data-text]"))];
    this.thought = new Thought(article, (sentence) => this.progress.say(sentence));
    this.calls = new Calls(article, this.foot);
    this.heard = 0;
    this.follow();
  }

  follow() {
    this.source = new EventSource(this.article.dataset.events);
    const on = (name, act) => this.source.addEventListener(name, (event) => {
      this.heard = performance.now();
      act.call(this, JSON.parse(event.data));
    });
    on("snapshot", ({ status }) => status === "queued" && this.progress.wait());
    on("queued", ({ reason }) => this.progress.say(reason ?? "Waiting for a free slot…"));
    on("loading", (event) => this.hasText || this.progress.loading(event));
    on("progress", (event) => this.hasText || this.progress.reading(event));
    on("typeset", this.typeset);
    on("tool_call", this.called);
    on("tool_result", this.called);
    on("done", this.end);
    // Our own event has data; without it, it is the browser's: the connection broke.
    this.source.addEventListener("error", (event) => {
      if (event.data) this.end(JSON.parse(event.data));
      else if (this.source.readyState === EventSource.CLOSED) this.again();
      else this.progress.say("Connection lost. Reconnecting…");
    });
  }

  // Who has logged out, or whose answer is gone, would ask for ever.
  async again() {
    this.progress.say("Connection lost. Reconnecting…");
    await new Promise((resolve) => setTimeout(resolve, 2000));
    if (!this.article.isConnected) return;
    const found = await fetch(this.article.dataset.events.replace(/\/events.*$/, "")).catch(() => null);
    if (!this.article.isConnected) return;
    if (found?.status === 401 || found?.status === 403) {
      this.progress.say("You are logged out. Log in and reload the page.");
    } else if (found?.status === 404) this.progress.say("This answer was deleted.");
    else this.follow();
  }

  // Asks anew if it is quiet: a connection that died in a sleep looks as if nothing were said.
  renew() {
    if (performance.now() - this.heard < QUIET_MS) return;
    this.source.close();
    this.follow();
  }

  // Whether there is something to read already; in a later round of calls, above it.
  get hasText() {
    return this.parts.at(-1).blocks.length > 0;
  }

  get text() {
    return this.parts.at(-1);
  }

  typeset(event) {
    if (event.part === "reasoning") {
      this.thought.typeset(event, this.hasText);
    } else {
      const part = this.part(event.part);
      part.apply(event);
      if (part.blocks.length) {
        this.thought.end();
        this.progress.write();
      }
    }
    this.grew();
  }

  // Text after a call is a part of its own.
  part(number) {
    while (this.parts.length <= number) {
      const element = document.createElement("div");
      element.className = "prose";
      element.dataset.text = "";
      this.foot.before(element);
      this.parts.at(-1).hideCaret();
      this.parts.push(new LiveBlocks(element));
    }
    return this.parts[number];
  }

  called(call) {
    this.text.hideCaret();
    this.calls.show(call);
    this.thought.hideButton();
    if (this.calls.some("waiting")) this.progress.say("Waiting for your approval.");
    else if (this.calls.some("running")) this.progress.say("Running a tool…");
    else this.progress.wait();
    this.grew();
  }

  say(sentence) {
    this.progress.say(sentence);
  }

  async end({ exact, code, finish_reason: reason }) {
    this.leave();
    this.article.dataset.status = code ? "failed" : reason === "stopped" ? "stopped" : "complete";
    this.thought.end();
    try {
      if (exact) await this.keep();
      else await htmx.ajax("GET", this.article.dataset.fragment, { target: this.article, swap: "outerHTML" });
    } finally {
      this.ended(this);
    }
  }

  // The article becomes the finished one: its text stays, what is below it comes.
  async keep() {
    const { article } = this;
    const url = `${article.dataset.fragment}?part=end`;
    await htmx.ajax("GET", url, { source: this.foot, target: this.foot, swap: "outerHTML" });
    if (this.foot.isConnected) return; // it could not be fetched
    for (const part of article.querySelectorAll("[data-text]")) {
      part.removeAttribute("data-text");
      if (part.hasChildNodes()) part.dataset.messageText = "";
      else part.remove();
    }
    this.thought.keep();
    article.classList.remove("answer-live");
    article.removeAttribute("aria-busy");
    article.removeAttribute("data-events");
    article.tabIndex = -1;
  }

  leave() {
    this.progress.stop();
    this.thought.stop();
    for (const part of this.parts) part.hideCaret();
    this.source.close();
  }
}
