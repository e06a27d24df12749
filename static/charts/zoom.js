// Zoom and pan of a chart: scroll or pinch to zoom, drag to pan, double click to reset.

const STEP = 1.0015; // of zoom, to the power of the pixels that were scrolled
const LINE = 16; // pixels, where a browser counts in lines

// `x` and `y`: what the whole of each axis is; `least`: as near as one can come, in their units.
export class View {
  constructor({ x, y, least }) {
    this.whole = { x, y };
    this.least = least;
    this.reset();
  }

  reset() {
    this.x = [...this.whole.x];
    this.y = [...this.whole.y];
  }

  // What an axis of the chart shows, as uPlot asks for it.
  range(name) {
    return () => this[name];
  }

  isWhole() {
    return ["x", "y"].every((name) => span(this[name]) >= span(this.whole[name]));
  }

  // `times` as much is seen, and what is `at` stays where it is.
  zoom(times, at) {
    const seen = span(this.x);
    const held = Math.min(span(this.whole.x) / seen, Math.max(this.least / seen, times));
    for (const name of ["x", "y"]) this.put(name, this[name].map((end) => at[name] + (end - at[name]) * held));
  }

  move(by) {
    for (const name of ["x", "y"]) this.put(name, this[name].map((end) => end + by[name]));
  }

  put(name, [from, to]) {
    const [first, last] = this.whole[name];
    const width = Math.min(to - from, last - first);
    const start = Math.min(last - width, Math.max(first, from));
    this[name] = [start, start + width];
  }

  plugin() {
    return { hooks: { ready: (chart) => listen(chart, this) } };
  }
}

const span = ([from, to]) => to - from;

function listen(chart, view) {
  const { over } = chart;
  const held = new Map(); // pointer -> where it is
  const value = (place) => ({ x: chart.posToVal(place.x, "x"), y: chart.posToVal(place.y, "y") });
  const place = (event) => {
    const box = over.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const show = () => {
    // A finger scrolls the page over a chart that is seen whole, and moves in one that is not.
    over.style.touchAction = view.isWhole() ? "pan-y" : "none";
    chart.redraw();
  };
  over.style.touchAction = "pan-y";
  over.addEventListener("wheel", (event) => {
    event.preventDefault();
    view.zoom(STEP ** (event.deltaY * (event.deltaMode ? LINE : 1)), value(place(event)));
    show();
  }, { passive: false });
  over.addEventListener("dblclick", () => { view.reset(); show(); });
  over.addEventListener("pointerdown", (event) => {
    held.set(event.pointerId, place(event));
    over.setPointerCapture(event.pointerId);
  });
  over.addEventListener("pointermove", (event) => {
    if (!held.has(event.pointerId)) return;
    const before = grip(held);
    held.set(event.pointerId, place(event));
    const after = grip(held);
    const [from, to] = [value(before.at), value(after.at)];
    view.move({ x: from.x - to.x, y: from.y - to.y });
    if (after.apart) view.zoom(before.apart / after.apart, from);
    show();
  });
  for (const end of ["pointerup", "pointercancel"]) over.addEventListener(end, (event) => held.delete(event.pointerId));
}

// The middle of what is held, and how far two fingers are apart.
function grip(held) {
  const [first, second] = held.values();
  if (!second) return { at: first, apart: 0 };
  const at = { x: (first.x + second.x) / 2, y: (first.y + second.y) / 2 };
  return { at, apart: Math.hypot(first.x - second.x, first.y - second.y) };
}
