// The text of an answer while it grows: blocks of HTML that the server has rendered.
//
// An event says what changes: which blocks stay, what one of them gets at its end, which blocks
// follow. So what a reader has selected above stays selected, and a long answer costs no more for
// its next word than a short one. Blocks stand in bundles: where one has grown, the browser asks all
// that stand beside it whether they have, too.

import { complete } from "../../core/text/markdown.js";

const BUNDLE = 16;

export class LiveBlocks {
  constructor(container) {
    this.container = container;
    this.blocks = [];
    this.finished = 0; // so many of them never change again
    this.caret = null;
  }

  apply({ at, inside, blocks, finished }) {
    // Whoever connects again is told all from the start: what is finished is here already.
    const known = at === 0 && !inside ? Math.min(this.finished, finished) : 0;
    const first = at + known;
    const stay = first + (inside ? 1 : 0);
    for (const block of this.blocks.splice(stay)) remove(block);
    if (inside) change(this.blocks[first], inside);
    for (const html of blocks.slice(known)) this.append(html);
    for (const block of this.blocks.slice(first)) complete(block);
    this.showCaret();
    if (this.finished === finished) return;
    this.finished = finished;
    this.container.dataset.finished = finished;
  }

  append(html) {
    if (this.blocks.length % BUNDLE === 0 || !this.container.lastElementChild) {
      const bundle = document.createElement("div");
      bundle.className = "bundle";
      this.container.append(bundle);
    }
    const block = parse(html).firstElementChild ?? document.createElement("p");
    this.container.lastElementChild.append(block);
    this.blocks.push(block);
  }

  // Behind the last character; none where nothing is written.
  showCaret() {
    const place = this.blocks.length ? lastText(this.blocks.at(-1)) : null;
    if (place === this.caret) return;
    this.hideCaret();
    place?.classList.add("caret");
    this.caret = place;
  }

  hideCaret() {
    this.caret?.classList.remove("caret");
    if (this.caret?.classList.length === 0) this.caret.removeAttribute("class");
    this.caret = null;
  }
}

function change(element, { path, keep, text, html }) {
  for (const place of path) {
    cut(element, place + 1);
    element = element.childNodes[place];
  }
  cut(element, keep);
  if (text) element.lastChild.appendData(text);
  if (html) element.append(parse(html));
}

function cut(element, keep) {
  while (element.childNodes.length > keep) element.lastChild.remove();
}

function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = html; // sanitised by the server, as all that a model writes
  return document.importNode(template.content, true);
}

function remove(block) {
  const bundle = block.parentElement;
  block.remove();
  if (!bundle.childElementCount) bundle.remove();
}

function lastText(block) {
  let element = block;
  for (;;) {
    const last = [...element.childNodes].findLast((node) => node.textContent.trim() && !node.ariaHidden);
    if (!last || last.nodeType !== Node.ELEMENT_NODE) return element;
    if (last.matches("figcaption, .math, .math-shown")) return last.matches("figcaption") ? block.querySelector("pre > code") : element;
    element = last;
  }
}
