// Announces new text of an answer to screen readers: whole paragraphs, a few seconds apart, politely.

import { count, pieces } from "./live_text.js";

const PAUSE_MS = 4000;

export class Announcer {
  constructor(place) {
    this.place = place;
    this.spoken = new WeakMap(); // the element of a text -> how many paragraphs were said
    this.last = 0;
  }

  say(sentence) {
    if (this.place) this.place.textContent = sentence;
  }

  // The last paragraph still grows, so it waits.
  grew({ text }) {
    const now = performance.now();
    if (now - this.last < PAUSE_MS || count(text) < 2) return;
    const news = this.take(text, count(text) - 1);
    if (!news) return;
    this.last = now;
    this.say(news);
  }

  ended({ text }) {
    this.say(`${this.take(text, count(text))} Answer complete.`.trim());
  }

  take(text, upto) {
    const from = this.spoken.get(text) ?? 0;
    if (upto <= from) return "";
    this.spoken.set(text, upto);
    return pieces(text).slice(from, upto).map((part) => part.textContent).join(" ");
  }
}
