// The line below an answer that is being written: what it waits for, or how far that is.

export class Progress {
  constructor(foot) {
    this.sentence = foot.firstChild;
    this.bar = foot.querySelector("progress");
    this.clock = 0;
  }

  wait() {
    this.say("Waiting for the first token…");
  }

  // A server that does not say how far it is: then the seconds tell that somebody is at work.
  loading({ share, reason }) {
    if (reason) return this.say(reason, share);
    if (share !== undefined) return this.say(`Loading the model: ${Math.round(share * 100)}%`, share);
    this.loadingSince ??= performance.now();
    const tell = () => {
      const seconds = Math.round((performance.now() - this.loadingSince) / 1000);
      this.show(`Loading the model${seconds ? ` (${seconds} s)` : ""}…`);
    };
    this.stop();
    this.clock = setInterval(tell, 1000);
    tell();
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
    this.stop();
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
