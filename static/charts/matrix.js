// Confusion matrix: a row of cells for each true label, a column for each predicted label.

import { axis, colours, ink, makeChart } from "./charts.js";
import { View } from "./zoom.js";
import { alike, shortened } from "./matrix_order.js";

/* global uPlot */

const LEAST = 5; // labels that are seen at the nearest
const LINE = 14; // pixels a name takes
const COUNT = [20, 16]; // pixels, wide and high, of a cell that has room for its number
const NAME_LENGTH = 26;
const LETTER = 6.2; // pixels
const NARROW = 560;

export function makeMatrix(element, { labels, support, cells }, section) {
  const chosen = section.querySelector("[data-matrix-order]");
  const ends = [-0.5, labels.length - 0.5];
  const view = new View({ x: ends, y: ends, least: Math.min(LEAST, labels.length) });
  const worst = Math.max(0.05, ...cells.filter(([truth, said]) => truth !== said).map(([truth, , count]) => count / support[truth]));
  let order = [];
  let place = [];
  let found = new Map();
  const sort = () => {
    order = chosen.value === "alike" ? alike(cells, support) : [...labels.keys()];
    place = [];
    for (const [at, label] of order.entries()) place[label] = at;
    found = new Map(cells.map((cell) => [`${place[cell[1]]} ${place[cell[0]]}`, cell]));
  };
  sort();

  const tell = (chart) => {
    const { left, top } = chart.cursor;
    const cell = found.get(`${Math.round(chart.posToVal(left, "x"))} ${Math.round(chart.posToVal(top, "y"))}`);
    if (!cell) return "";
    const [truth, said, count] = cell;
    const share = `${count} of ${support[truth]} rows (${((100 * count) / support[truth]).toFixed(1)}%)`;
    return truth === said ? `${labels[truth]}\ncorrect: ${share}` : `${labels[truth]}\npredicted as ${labels[said]}\n${share}`;
  };
  const names = () => {
    const most = element.clientWidth < NARROW ? 90 : 190;
    const room = Math.min(most, 24 + 7 * Math.max(...labels.map((name) => Math.min(name.length, NAME_LENGTH))));
    return {
      size: () => room,
      values: (_, places) => places.map((at) => shortened(labels[order[at]], Math.floor((room - 12) / LETTER))),
      font: "11px Inter, system-ui, sans-serif", grid: { show: false }, border: { show: true, width: 1, stroke: ink("line") },
    };
  };
  const chart = makeChart(element, {
    tell,
    padding: [8, 12, 0, 0],
    scales: { x: { time: false, range: view.range("x") }, y: { dir: -1, range: view.range("y") } },
    axes: [
      axis({ ...names(), rotate: 60, splits: (chart, _, from, to) => places(from, to, chart.bbox.width / uPlot.pxRatio) }),
      axis({ ...names(), splits: (chart, _, from, to) => places(from, to, chart.bbox.height / uPlot.pxRatio) }),
    ],
    series: [{}, { paths: () => null, points: { show: false } }],
    plugins: [view.plugin(), { hooks: { draw: (chart) => paint(chart, cells, place, support, worst) } }],
  }, [ends, [null, null]]);
  chosen.addEventListener("change", () => {
    sort();
    chart.redraw(true, true);
  });
}

// The labels whose names are written: all that are seen, or as many as there is room for.
function places(from, to, pixels) {
  const step = Math.max(1, Math.ceil((LINE * (to - from)) / Math.max(pixels, 1)));
  const first = Math.ceil(from / step) * step;
  return Array.from({ length: Math.floor((to - first) / step) + 1 }, (_, at) => first + at * step);
}

function paint(chart, cells, place, support, worst) {
  const { ctx, bbox } = chart;
  const ratio = uPlot.pxRatio;
  const c = colours();
  const [across, down] = ["x", "y"].map((name) => Math.abs(chart.valToPos(1, name, true) - chart.valToPos(0, name, true)));
  const gap = Math.min(ratio, across / 10) / 2;
  const written = across >= COUNT[0] * ratio && down >= COUNT[1] * ratio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  Object.assign(ctx, { font: `${11 * ratio}px Inter, system-ui, sans-serif`, textAlign: "center", textBaseline: "middle", lineWidth: 2 * ratio, strokeStyle: c.sheet });
  for (const [truth, said, count] of cells) {
    const [x, y] = [chart.valToPos(place[said], "x", true), chart.valToPos(place[truth], "y", true)];
    const share = count / support[truth];
    ctx.fillStyle = truth === said ? mix(c.strong, c.fill, share) : mix(c.bad, mix(c.bad, c.sheet, 0.22), share / worst);
    ctx.fillRect(x - across / 2 + gap, y - down / 2 + gap, across - 2 * gap, down - 2 * gap);
    if (!written) continue;
    ctx.fillStyle = c.text;
    ctx.strokeText(count, x, y);
    ctx.fillText(count, x, y);
  }
  ctx.restore();
}

// A colour on the way from `to` to `from`.
function mix(from, to, share) {
  const [a, b] = [from, to].map((hex) => [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16)));
  return `#${a.map((part, place) => Math.round(part * share + b[place] * (1 - share)).toString(16).padStart(2, "0")).join("")}`;
}
