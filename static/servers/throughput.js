// The small charts of a server's card: made once, then only given new numbers.

/* global uPlot */

import { axis, ink, makeChart } from "../charts/charts.js";

const HEADROOM = 1.15;
const LEAST = 10; // tokens/s: below that an idle server would look busy
const charts = new WeakMap(); // by element

const compact = new Intl.NumberFormat("en", { notation: "compact" });
const rate = {
  least: LEAST, says: compact.format, tells: (value) => `${Math.round(value).toLocaleString("en")} tokens/s`,
  line: { stroke: ink("accent"), fill: ink("accent", "24"), width: 1.5, points: { show: false } },
};
const kinds = {
  prompt: rate,
  completion: rate,
  waited: {
    least: 3, says: compact.format, tells: (value) => `${value} waited`,
    line: { fill: ink("warn"), stroke: ink("warn"), width: 0, paths: uPlot.paths.bars({ size: [0.7, 8] }), points: { show: false } },
  },
  cached: {
    most: 1, says: (share) => `${100 * share}%`, tells: (share) => `${Math.round(100 * share)}% from the prompt cache`,
    line: { stroke: ink("accent"), width: 1.5, points: { show: true, size: 4, fill: ink("accent") } },
  },
};

export function drawRates(root) {
  for (const section of root.querySelectorAll("[data-rates]")) {
    const rates = JSON.parse(section.dataset.rates);
    for (const element of section.querySelectorAll("[data-chart]")) draw(element, rates);
  }
}

function draw(element, { start, step, ...rates }) {
  const values = rates[element.dataset.chart];
  const data = [values.map((_, place) => start + place * step), values];
  const chart = charts.get(element);
  if (chart) chart.setData(data);
  else charts.set(element, make(element, kinds[element.dataset.chart], data));
}

// Minutes before now: the marks stay where they are while the line moves. A phone has no room for all.
function marks({ data: [times], width }) {
  return (width < 240 ? [10, 0] : [10, 5, 0]).map((minutes) => times.at(-1) - 60 * minutes);
}

function ago({ data: [times] }, marked) {
  return marked.map((time) => (time === times.at(-1) ? "now" : `−${(times.at(-1) - time) / 60} min`));
}

function make(element, kind, data) {
  const top = (high) => kind.most ?? Math.max(kind.least, HEADROOM * high);
  const tell = ({ data: [times, values], cursor: { idx } }) => {
    const value = values[idx];
    const time = new Date(1000 * times[idx]).toLocaleTimeString([], { hourCycle: "h23" });
    return `${time}\n${value === null ? "no requests" : kind.tells(value)}`;
  };
  return makeChart(element, {
    tell,
    padding: [8, 14, 0, 0],
    cursor: { y: false },
    scales: { y: { range: (_, low, high) => [0, top(high ?? 0)] } },
    axes: [
      axis({ size: 18, gap: 4, splits: marks, values: ago, grid: { show: false }, border: { show: true, width: 1, stroke: ink("strong") } }),
      axis({ size: 44, space: 24, values: (_, marked) => marked.map(kind.says) }),
    ],
    series: [{}, kind.line],
  }, data);
}
