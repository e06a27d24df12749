// The calls of one answer while it is being written: a card after the text that came before it.
//
// What a card says comes from the server, fetched anew whenever its call has news: it looks the
// same while it happens, after a reload and when the answer has ended.

export class Calls {
  constructor(article) {
    this.article = article;
    this.first = article.querySelector("[data-text]");
    this.states = new Map(); // call -> the state that its card shows or fetches
    this.busy = new Set();
  }

  // Takes all cards away; returns where text goes then.
  clear() {
    for (const element of this.article.querySelectorAll(".call, [data-more-text]")) element.remove();
    this.states.clear();
    return this.first;
  }

  // Shows news of a call. `text` is where text goes now; returns where it goes from now on.
  show(call, text) {
    const known = this.states.get(call.id);
    this.states.set(call.id, call.state);
    if (known === call.state) return text;
    if (known === undefined) text = this.place(call, text);
    this.fetch(call.id);
    return text;
  }

  // Whether one of them is in this state.
  some(state) {
    return [...this.states.values()].includes(state);
  }

  place(call, text) {
    const card = document.createElement("details");
    card.className = "call";
    card.id = `call-${call.id}`;
    const summary = document.createElement("summary");
    summary.textContent = call.name;
    card.append(summary);
    if (text !== this.first && !text.hasChildNodes()) { // another call of the same round
      text.before(card);
      return text;
    }
    const more = document.createElement("div");
    more.className = "live-text prose";
    more.dataset.moreText = "";
    text.after(card, more);
    return more;
  }

  async fetch(id) {
    if (this.busy.has(id)) return;
    this.busy.add(id);
    const shown = this.states.get(id);
    try {
      const card = this.card(id);
      const wasOpen = card?.open && !card.classList.contains("call-waiting");
      const url = this.article.dataset.call.replace("/0/", `/${id}/`);
      // Each card asks for itself: of requests from one place htmx keeps only the last.
      if (card) await htmx.ajax("GET", url, { source: card, target: card, swap: "outerHTML" });
      if (wasOpen && this.card(id)) this.card(id).open = true;
    } finally {
      this.busy.delete(id);
    }
    if (this.article.isConnected && this.states.has(id) && this.states.get(id) !== shown) this.fetch(id);
  }

  card(id) {
    return this.article.querySelector(`#call-${id}`);
  }
}
