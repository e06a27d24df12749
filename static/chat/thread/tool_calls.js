// The calls of one answer while it is being written: a card after the text that came before it.
//
// What a card says comes from the server, fetched anew whenever its call has news: it looks the
// same while it happens, after a reload and when the answer has ended.

export class Calls {
  // Cards are put before `foot`.
  constructor(article, foot) {
    this.article = article;
    this.foot = foot;
    this.states = new Map(); // call -> the state that its card shows or fetches
    this.busy = new Set();
  }

  // Shows news of a call.
  show(call) {
    const known = this.states.get(call.id);
    this.states.set(call.id, call.state);
    if (known === call.state) return;
    if (known === undefined) this.place(call);
    this.fetch(call.id);
  }

  // Whether one of them is in this state.
  some(state) {
    return [...this.states.values()].includes(state);
  }

  place(call) {
    const card = document.createElement("details");
    card.className = "call";
    card.id = `call-${call.id}`;
    const summary = document.createElement("summary");
    summary.textContent = call.name;
    card.append(summary);
    this.foot.before(card);
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

// Y allows and N denies the call that waits, unless somebody is writing.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
  if (event.target.closest?.("input, textarea, select, dialog, [popover], [contenteditable]")) return;
  const button = document.querySelector(`.call-waiting [data-decide="${CSS.escape(event.key.toLowerCase())}"]`);
  if (!button) return;
  event.preventDefault();
  button.click();
});
