// Text that grows: however long it is, the browser has the same little to do for the next word.
//
// A paragraph is an element of its own, and so is what follows a long one's next line: only the
// element that grows is laid out. Elements stand in bundles, because where one has grown the
// browser asks all that stand beside it whether they have, too.

const BUNDLE = 16;
const LONG = 2000; // characters

export function append(container, text) {
  const [first, ...rest] = text.split("\n\n");
  grow(container, first);
  for (const paragraph of rest) {
    begin(container);
    grow(container, paragraph);
  }
}

// The elements of a text, in order. One that goes on belongs to the paragraph before it.
export function pieces(container) {
  return [...container.children].flatMap((bundle) => [...bundle.children]);
}

export function count(container) {
  const bundles = container.childElementCount;
  return bundles && (bundles - 1) * BUNDLE + container.lastElementChild.childElementCount;
}

function grow(container, text) {
  let element = container.lastElementChild?.lastElementChild ?? begin(container);
  const [first, ...rest] = text.split("\n");
  add(element, first);
  for (const line of rest) {
    if ((element.lastChild?.length ?? 0) > LONG) add(element = begin(container, "goes-on"), line);
    else add(element, `\n${line}`);
  }
}

function add(element, text) {
  if (element.lastChild) element.lastChild.appendData(text);
  else if (text) element.append(document.createTextNode(text));
}

function begin(container, name = "") {
  if (count(container) % BUNDLE === 0) container.append(made(name));
  container.lastElementChild.append(made(name));
  return container.lastElementChild.lastElementChild;
}

function made(name) {
  const element = document.createElement("div");
  if (name) element.className = name;
  return element;
}
