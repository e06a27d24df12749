// Near-duplicates: the server evaluates every threshold once, so the slider shows its effect at once.

import { axis, colours, ink, makeChart, readByKeys } from "../charts/charts.js";

/* global uPlot */

const AGAIN_MS = 300;
const OFF = 101;
const form = document.getElementById("near");
const slider = form.elements.threshold;
const element = document.getElementById("near-chart");
const said = document.getElementById("near-status");
const button = document.getElementById("near-apply");
let data = null;
let chart = null;
let drawn = null; // what the chart shows, also while new numbers are on their way
let asked = 0;

function number(value) {
  return value.toLocaleString("en");
}

function rows(count) {
  return `${number(count)} row${count === 1 ? "" : "s"}`;
}

function write() {
  const step = Number(slider.value);
  const name = step === OFF ? "off" : `${step}%`;
  document.getElementById("near-value").textContent = name;
  slider.setAttribute("aria-valuetext", name);
  if (!data) {
    button.disabled = true;
    return;
  }
  const at = data.steps.indexOf(step);
  const out = at < 0 ? 0 : data.out[at];
  const back = at < 0 ? data.all_back : data.back[at];
  const goes = out ? `${rows(out)} of ${number(data.accepted)} would be rejected` : "No rows would be rejected";
  const comes = back ? `, ${number(back)} would be restored` : "";
  const kept = data.seen ? ` Not affected: ${rows(data.seen)} you reviewed.` : "";
  said.textContent = `${goes}${comes}: ${number(data.accepted - out + back)} accepted.${kept}`;
  button.disabled = !out && !back && slider.value === slider.dataset[form.elements.by.value];
  chart?.setData(bars());
}

// What stays and what goes at the threshold, and how high they stand.
function bars() {
  const counts = [drawn.below, ...drawn.histogram];
  const goes = (at) => at > 0 && drawn.steps[at - 1] >= Number(slider.value);
  return [
    counts.map((_, at) => at),
    counts.map((count, at) => (goes(at) ? null : count)),
    counts.map((count, at) => (goes(at) ? count : null)),
  ];
}

function tell({ cursor: { idx } }) {
  if (idx === null) return "";
  return idx ? `${rows(drawn.histogram[idx - 1])}: ${drawn.steps[idx - 1]}% similar to\nthe most similar earlier row`
    : `${rows(drawn.below)}: below 50% similarity`;
}

// The first bar is nearly always by far the tallest, and says the least.
function top() {
  const tallest = Math.max(...drawn.histogram, 1);
  return drawn.below > 3 * tallest ? Math.max(10, 2 * tallest) : 1.1 * Math.max(drawn.below, tallest);
}

// What does not fit is written onto the bar.
function writeFirst(chart) {
  if (drawn.below <= top()) return;
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.fillStyle = colours().text;
  ctx.font = `${12 * uPlot.pxRatio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  ctx.fillText(`↑ ${number(drawn.below)}`, chart.valToPos(0.6, "x", true), bbox.top + 2 * uPlot.pxRatio);
  ctx.restore();
}

function make() {
  const line = (colour) => ({ fill: ink(colour), stroke: ink(colour), width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.88] }) });
  const chart = makeChart(element, {
    tell,
    padding: [10, 22, 0, 0],
    cursor: { y: false },
    scales: { x: { time: false, range: () => [-0.6, drawn.steps.length + 0.6] }, y: { range: () => [0, top()] } },
    axes: [
      axis({
        label: "similarity to the most similar earlier row", size: 22, labelSize: 20, grid: { show: false }, border: { show: true, width: 1, stroke: ink("strong") },
        splits: () => drawn.steps.flatMap((step, at) => (step % 10 ? [] : [at && at + 1])),
        values: (_, places) => places.map((at) => (at ? `${drawn.steps[at - 1]}%` : "< 50%")),
      }),
      axis({ size: 44, space: 30, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000] }),
    ],
    series: [{}, line("accent"), line("warn")],
    plugins: [{ hooks: { draw: writeFirst } }],
  }, bars());
  readByKeys(element, chart);
  return chart;
}

function show(found) {
  data = found;
  if (data.rows) {
    drawn = data;
    chart ??= make();
    write();
  } else {
    said.textContent = "No texts to compare yet.";
  }
}

async function measure() {
  const mine = asked += 1;
  data = null;
  write();
  said.textContent = "Comparing rows…";
  for (;;) {
    const answer = await fetch(`${form.dataset.near}?by=${form.elements.by.value}`, { headers: { Accept: "application/json" } });
    const found = answer.ok ? await answer.json() : { error: "The rows could not be compared. Try again." };
    if (mine !== asked) return; // something else was asked for meanwhile
    if (found.error) {
      said.textContent = found.error;
      return;
    }
    if (found.steps) return show(found);
    said.textContent = `Comparing rows: ${number(found.done)} of ${number(found.total)}…`;
    await new Promise((done) => setTimeout(done, AGAIN_MS));
  }
}

form.addEventListener("input", (event) => {
  if (event.target === slider) write();
});
form.elements.by.addEventListener("change", () => {
  slider.value = slider.dataset[form.elements.by.value];
  measure();
});
document.getElementById("near-measure").addEventListener("click", measure);
write();

// Not before somebody comes this far: a job may have 100,000 rows.
if (!("live" in form.dataset)) {
  new IntersectionObserver(([seen], observer) => {
    if (!seen.isIntersecting) return;
    observer.disconnect();
    measure();
  }).observe(form);
}
