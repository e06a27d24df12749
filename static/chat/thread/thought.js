// The thought of an answer: one line with its seconds, open while it runs, folded when the answer
// starts, unless the reader has opened or closed it.

import { LiveBlocks } from "./live_blocks.js";

export class Thought {
  constructor(article, say) {
    this.say = say;
    this.url = article.dataset.answerNowUrl;
    this.details = article.querySelector("[data-reasoning]");
    this.title = this.details.querySelector("[data-thought-title]");
    this.text = new LiveBlocks(article.querySelector("[data-reasoning-text]"));
    this.button = article.querySelector("[data-answer-now]");
    this.button.addEventListener("click", () => this.endNow());
    this.details.querySelector("summary").addEventListener("click", () => { this.isReaders = true; });
    this.clock = 0;
  }

  // `isPast`: the answer has begun.
  typeset(event, isPast) {
    this.text.apply(event);
    if (!this.text.blocks.length) return;
    this.details.hidden = false;
    if (isPast || this.hasEnded) return this.text.hideCaret();
    if (!this.since) this.begin();
  }

  begin() {
    this.since = performance.now();
    if (!this.isReaders) this.details.open = true;
    this.button.hidden = false;
    this.say("Thinking…");
    this.clock = setInterval(() => this.tell(), 1000);
    this.tell();
  }

  // How long it thinks, as far as this page has seen it.
  tell() {
    const seconds = Math.round((performance.now() - this.since) / 1000);
    if (this.hasEnded) this.title.textContent = seconds ? `Thought for ${seconds} s` : "Thinking";
    else this.title.textContent = seconds ? `Thinking, ${seconds} s` : "Thinking…";
  }

  // The answer starts.
  end() {
    this.stop();
    this.hideButton();
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.text.hideCaret();
    if (!this.since) return;
    this.tell();
    if (!this.isReaders) this.details.open = false;
  }

  // Stays as a part of the finished answer, if there was one.
  keep() {
    if (this.details.hidden) this.details.remove();
    else this.button.remove();
  }

  hideButton() {
    this.button.hidden = true;
  }

  stop() {
    clearInterval(this.clock);
    this.text.hideCaret();
  }

  async endNow() {
    const headers = JSON.parse(document.body.getAttribute("hx-headers"));
    this.button.disabled = true;
    const sent = await fetch(this.url, { method: "POST", headers }).catch(() => null);
    if (!sent?.ok) this.say("Workbench cannot be reached. The model continues thinking.");
    this.button.disabled = false;
  }
}
