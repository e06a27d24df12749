// The line below an answer that is being written: what it waits for, or how far that is.

const PATIENCE_S = { loading: 1, waiting: 5, writing: 10 };

// By what goes on: what it is called, and after seconds without a word.
const SENTENCES = {
  loading: (seconds) => `Loading the model${seconds}…`,
  waiting: (seconds) => `Waiting for the first token${seconds}…`,
  writing: (seconds) => (seconds ? `No new text${seconds}…` : "Writing…"),
};

export class Progress {
  constructor(foot) {
    this.sentence = foot.firstChild;
    this.bar = foot.querySelector("progress");
    this.clock = setInterval(() => this.tell(), 1000);
    this.doing = "";
    if (this.sentence.data.includes(SENTENCES.waiting(""))) this.wait();
  }

  wait() {
    this.go("waiting");
  }

  // Called for each piece of text.
  write() {
    this.since = performance.now();
    this.go("writing");
  }

  loading({ share, reason }) {
    if (reason) return this.say(reason, share);
    if (share !== undefined) return this.say(`Loading the model: ${Math.round(share * 100)}%`, share);
    this.go("loading");
  }

  go(doing) {
    if (this.doing === doing) return;
    this.doing = doing;
    this.since = performance.now();
    this.tell();
  }

  // The seconds tell that somebody is at work, or that nobody is.
  tell() {
    if (!this.doing) return;
    const seconds = Math.round((performance.now() - this.since) / 1000);
    this.show(SENTENCES[this.doing](seconds < PATIENCE_S[this.doing] ? "" : ` (${seconds} s)`));
  }

  reading({ total, cached, processed }) {
    const toRead = total - cached;
    if (toRead <= 0 || processed >= total) return this.wait();
    const kept = cached ? ` (${cached.toLocaleString()} cached)` : "";
    this.say(
      `Processing the prompt: ${processed.toLocaleString()} of ${total.toLocaleString()} tokens${kept}`,
      (processed - cached) / toRead,
    );
  }

  // With a bar where it is known which share, 0 to 1, of something is done.
  say(sentence, share) {
    this.doing = "";
    this.show(sentence, share);
  }

  show(sentence, share) {
    if (this.sentence.data !== sentence) this.sentence.data = sentence;
    this.bar.hidden = share === undefined;
    if (share !== undefined) this.bar.value = share;
  }

  stop() {
    clearInterval(this.clock);
  }
}
