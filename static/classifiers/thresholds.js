// The two thresholds, evaluated in the browser while a slider moves: the rows are few and load once.

import { axis, colours, ink, makeChart, percents, readByKeys } from "../charts/charts.js";

/* global uPlot */

const FEWEST = 10; // answers: the share of right ones among fewer says nothing

const form = document.querySelector("[data-thresholds]");
if (form) start(form);

async function start(form) {
  const unsure = form.elements.unsure;
  const kept = form.elements.kept;
  write(unsure, kept);
  const answer = await fetch(form.dataset.thresholds, { headers: { Accept: "application/json" } });
  if (!answer.ok) return;
  const data = await answer.json();
  const saved = [unsure.value, kept.value].join();
  const gates = () => ({ unsure: Number(unsure.value), limit: limitOf(data, Number(kept.value)) });
  const repaint = makeCurve(document.querySelector("[data-chart=gates]"), data, gates);
  const update = () => {
    write(unsure, kept);
    show(form, data, gates());
    form.querySelector("[data-threshold=changed]").hidden = [unsure.value, kept.value].join() === saved;
    repaint();
  };
  form.addEventListener("input", update);
  update();
}

function write(unsure, kept) {
  document.getElementById("threshold-unsure-value").textContent = percent(Number(unsure.value), 0);
  const turned = 1 - Number(kept.value);
  document.getElementById("threshold-kept-value").textContent = turned < 0.001 ? "none" : percent(turned, 1);
}

// The score below which a text is turned away, for a share of in-scope texts to keep.
function limitOf(data, kept) {
  let best = data.limits[0];
  for (const step of data.limits) if (Math.abs(step[0] - kept) < Math.abs(best[0] - kept)) best = step;
  return best[1] === null ? -Infinity : best[1];
}

function pass(rows, unsure, limit) {
  const found = { rows: rows.length, answered: 0, right: 0, unsure: 0, none: 0 };
  for (const [confidence, score, right] of rows) {
    if (score < limit) found.none += 1;
    else if (confidence < unsure) found.unsure += 1;
    else { found.answered += 1; found.right += right; }
  }
  return found;
}

function show(form, data, { unsure, limit }) {
  const found = pass(data.rows, unsure, limit);
  const strange = pass(data.strange, unsure, limit);
  const put = (name, text) => { form.querySelector(`[data-threshold=${name}]`).textContent = text; };
  put("coverage", share(found.answered, found.rows));
  put("precision", share(found.right, found.answered));
  put("unsure", found.unsure.toLocaleString("en"));
  put("none", found.none.toLocaleString("en"));
  put("recall", share(strange.rows - strange.answered, strange.rows));
}

// Every value of the first slider, fewest answers first: coverage, precision, the value.
function curve(data, limit) {
  const points = [];
  for (let at = 99; at >= 0; at -= 1) {
    const found = pass(data.rows, at / 100, limit);
    if (found.answered >= FEWEST) points.push([found.answered / found.rows, found.right / found.answered, at / 100]);
  }
  return points;
}

function makeCurve(element, data, gates) {
  let points = [];
  let here = [];
  const work = () => {
    const { unsure, limit } = gates();
    const found = pass(data.rows, unsure, limit);
    points = curve(data, limit);
    here = found.answered ? [found.answered / found.rows, found.right / found.answered] : [];
    return [points.map((point) => point[0]), points.map((point) => point[1])];
  };
  const lowest = () => Math.floor(20 * Math.min(1, ...points.map((point) => point[1]))) / 20;
  const tell = ({ cursor: { idx } }) => {
    const point = points[idx];
    return point ? `threshold ${percent(point[2], 0)}\n${percent(point[0], 1)} labelled\n${percent(point[1], 1)} of those correct` : "";
  };
  const chart = makeChart(element, {
    tell,
    padding: [14, 22, 0, 0],
    cursor: { y: false },
    scales: { x: { time: false, range: () => [0, 1] }, y: { range: () => [Math.min(lowest(), 0.95), 1] } },
    axes: [
      axis({ label: "labelled (coverage)", size: 24, space: 60, values: percents }),
      axis({ label: "correct (precision)", size: 56, space: 40, values: percents }),
    ],
    series: [{}, { stroke: ink("accent"), width: 2, points: { show: true, size: 5, fill: ink("accent") } }],
    plugins: [{ hooks: { draw: (chart) => ring(chart, here) } }],
  }, work());
  readByKeys(element, chart);
  return () => chart.setData(work());
}

// Where the sliders are.
function ring({ ctx, valToPos }, [x, y]) {
  if (x === undefined) return;
  ctx.save();
  ctx.strokeStyle = colours().text;
  ctx.lineWidth = 2 * uPlot.pxRatio;
  ctx.beginPath();
  ctx.arc(valToPos(x, "x", true), valToPos(y, "y", true), 8 * uPlot.pxRatio, 0, 2 * Math.PI);
  ctx.stroke();
  ctx.restore();
}

function share(part, whole) {
  return whole ? percent(part / whole, 1) : "–";
}

function percent(value, digits) {
  return `${(100 * value).toFixed(digits)}%`;
}
