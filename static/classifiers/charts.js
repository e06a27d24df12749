// Charts of a version: reliability diagram and learning curve.

import { axis, colours, ink, makeChart, percents, readByKeys } from "../charts/charts.js";

/* global uPlot */

const makers = { reliability: makeReliability, curve: makeCurve };
const drawn = new WeakSet();

async function draw(section) {
  if (drawn.has(section)) return;
  drawn.add(section);
  const answer = await fetch(section.dataset.charts, { headers: { Accept: "application/json" } });
  if (!answer.ok) return;
  const data = await answer.json();
  for (const element of section.querySelectorAll("[data-chart]")) makers[element.dataset.chart](element, data);
}

function drawAll() {
  for (const section of document.querySelectorAll("[data-charts]")) draw(section);
}

drawAll();
document.addEventListener("htmx:afterSwap", drawAll);

const shares = (label, more) => axis({ label, space: 40, values: percents, ...more });

// Bins by what it said; larger points stand for more rows. The dashed line is where they should be.
function makeReliability(element, { reliability: bins }) {
  const most = Math.max(...bins.map((bin) => bin.count));
  const said = bins.map((bin) => bin.confidence);
  const tell = ({ cursor: { idx } }) => {
    const bin = bins[idx - 1];
    return bin ? `confidence ${percent(bin.confidence)}\naccuracy ${percent(bin.accuracy)}\n${bin.count.toLocaleString("en")} rows` : "";
  };
  const points = (chart) => bins.forEach((bin, at) => {
    if (bin.low !== undefined) bar(chart, bin.confidence, bin.low, bin.high); // older runs have none
    const size = 3 + 8 * Math.sqrt(bin.count / most);
    dot(chart, bin.confidence, bin.accuracy, size);
    write(chart, bin, bins[at + 1], size);
  });
  const chart = makeChart(element, {
    tell,
    padding: [12, 30, 0, 0],
    cursor: { y: false },
    scales: { x: { time: false, range: () => [0, 1] }, y: { range: () => [0, 1] } },
    axes: [shares("confidence", { size: 24, space: 60 }), shares("accuracy", { size: 52 })],
    series: [
      {},
      { stroke: ink("strong"), dash: [6, 4], width: 1.5, points: { show: false } },
      { stroke: ink("accent"), width: 1.5, points: { show: false } },
    ],
    plugins: [{ hooks: { draw: points } }],
  }, [[0, ...said, 1], [0, ...said, 1], [null, ...bins.map((bin) => bin.accuracy), null]]);
  readByKeys(element, chart);
}

// How many rows a point has, below its bar; left out where the next one has no room beside it.
function write({ ctx, valToPos }, { confidence, accuracy, low, count }, next, size) {
  const x = valToPos(confidence, "x", true);
  const text = count.toLocaleString("en");
  ctx.save();
  ctx.font = `${11 * uPlot.pxRatio}px ${getComputedStyle(document.body).fontFamily}`;
  ctx.fillStyle = colours().text;
  ctx.textAlign = "center";
  ctx.textBaseline = "top";
  if (!next || valToPos(next.confidence, "x", true) - x > ctx.measureText(text).width + 6 * uPlot.pxRatio) {
    const below = Math.max(valToPos(low ?? accuracy, "y", true), valToPos(accuracy, "y", true) + size * uPlot.pxRatio);
    ctx.fillText(text, x, below + 4 * uPlot.pxRatio);
  }
  ctx.restore();
}

// Accuracy on the test rows by how many rows it was trained on, with the interval of each point.
function makeCurve(element, { curve }) {
  const lowest = Math.max(0, Math.floor(10 * Math.min(...curve.map((point) => point.low))) / 10);
  const tell = ({ cursor: { idx } }) => {
    const point = curve[idx];
    return point ? `${point.rows.toLocaleString("en")} rows\n${percent(point.accuracy)} correct\n${percent(point.low)} to ${percent(point.high)}` : "";
  };
  const end = { stroke: () => "transparent", points: { show: false } };
  const chart = makeChart(element, {
    tell,
    padding: [12, 28, 0, 0],
    cursor: { y: false },
    scales: {
      x: { time: false, distr: 3, range: () => [curve[0].rows, curve.at(-1).rows] },
      y: { range: () => [lowest, 1] },
    },
    axes: [
      axis({
        label: "training rows", size: 24, grid: { show: false }, border: { show: true, width: 1, stroke: ink("strong") },
        splits: (chart) => roomy(curve.map((point) => point.rows), chart),
        filter: (_, marks) => marks,
        values: (_, marks) => marks.map((rows) => rows.toLocaleString("en")),
      }),
      shares("accuracy", { size: 52 }),
    ],
    series: [{}, end, end, { stroke: ink("accent"), width: 2, points: { show: true, size: 8, fill: ink("accent") } }],
    bands: [{ series: [1, 2], fill: ink("accent", "24") }],
  }, [curve.map((point) => point.rows), ...["high", "low", "accuracy"].map((name) => curve.map((point) => point[name]))]);
  readByKeys(element, chart);
}

// Those of the numbers that can be written below a chart without touching each other.
function roomy(numbers, chart) {
  const across = Math.log(numbers.at(-1) / numbers[0]);
  const place = (value) => (Math.log(value / numbers[0]) / across) * chart.bbox.width / uPlot.pxRatio;
  let free = Infinity;
  return numbers.toReversed().filter((value) => {
    if (place(value) > free) return false;
    free = place(value) - 56;
    return true;
  }).reverse();
}

function dot({ ctx, valToPos }, x, y, radius) {
  ctx.save();
  ctx.fillStyle = colours().accent;
  ctx.beginPath();
  ctx.arc(valToPos(x, "x", true), valToPos(y, "y", true), radius * uPlot.pxRatio, 0, 2 * Math.PI);
  ctx.fill();
  ctx.restore();
}

function bar({ ctx, valToPos }, x, low, high) {
  ctx.save();
  ctx.strokeStyle = colours().accent;
  ctx.lineWidth = uPlot.pxRatio;
  ctx.beginPath();
  ctx.moveTo(valToPos(x, "x", true), valToPos(low, "y", true));
  ctx.lineTo(valToPos(x, "x", true), valToPos(high, "y", true));
  ctx.stroke();
  ctx.restore();
}

function percent(share) {
  return `${(100 * share).toFixed(1)}%`;
}
