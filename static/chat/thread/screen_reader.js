// Announces new text of an answer to screen readers: whole blocks, a few seconds apart, politely.

const PAUSE_MS = 4000;

export class Announcer {
  constructor(place) {
    this.place = place;
    this.spoken = new WeakMap(); // the text -> how many blocks were said
    this.last = 0;
  }

  say(sentence) {
    if (this.place) this.place.textContent = sentence;
  }

  // The last block still grows, so it waits.
  grew({ text }) {
    const now = performance.now();
    if (now - this.last < PAUSE_MS || !text.finished) return;
    const news = this.take(text, text.finished);
    if (!news) return;
    this.last = now;
    this.say(news);
  }

  ended({ text }) {
    this.say(`${this.take(text, text.blocks.length)} Answer complete.`.trim());
  }

  take(text, upto) {
    const from = this.spoken.get(text) ?? 0;
    if (upto <= from) return "";
    this.spoken.set(text, upto);
    return text.blocks.slice(from, upto).map((block) => block.textContent).join(" ");
  }
}
