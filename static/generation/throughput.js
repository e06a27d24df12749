// Slots in use and rows/s of a job over time. Updated while the job runs.

import { axis, clock, ink, makeChart, readByKeys } from "../charts/charts.js";

const EVERY_MS = 5000;
const STILL_S = 15;
const element = document.querySelector("[data-throughput]");
const said = document.getElementById("throughput-status");
let course = { points: [], slots: 0 };
let chart = null;

function isLive() {
  return document.getElementById("progress")?.hasAttribute("hx-get");
}

// Each point as long as it lasted, with a gap where the job stood still: seconds, slots, rows/s.
function steps() {
  const data = [[], [], []];
  const put = (...values) => values.forEach((value, line) => data[line].push(value));
  for (const [at, [start, seconds, slots, rows]] of course.points.entries()) {
    put(start, slots / seconds, rows / seconds);
    put(start + seconds, slots / seconds, rows / seconds);
    const next = course.points[at + 1];
    if (next && next[0] - start - seconds > STILL_S) put(start + seconds, null, null);
  }
  return data;
}

function tell({ data: [times, slots, rows], cursor: { idx } }) {
  if (slots[idx] === null || slots[idx] === undefined) return "";
  const time = new Date(1000 * times[idx]).toLocaleTimeString([], { hourCycle: "h23" });
  return `${time}\nSlots in use: ${slots[idx].toFixed(2)}\nRows/s: ${rows[idx].toFixed(2)}`;
}

// When it had more slots, it may have used more than it has now.
const most = (high) => Math.max(course.slots, Math.ceil((high ?? 0) - 0.1), 1);

function make() {
  const line = (scale, colour, fill) => ({ scale, stroke: ink(colour), fill, width: 1.5, points: { show: false } });
  const chart = makeChart(element, {
    tell,
    padding: [10, 0, 0, 0],
    cursor: { y: false },
    scales: { slots: { range: (_, low, high) => [0, most(high)] }, rows: { range: (_, low, high) => [0, 1.1 * high || 1] } },
    axes: [
      axis({ size: 22, space: 80, values: clock, grid: { show: false }, border: { show: true, width: 1, stroke: ink("strong") } }),
      axis({ scale: "slots", label: "Slots", stroke: ink("accent"), size: 30, space: 24, incrs: [1, 2, 5, 10, 20, 50, 100] }),
      axis({ scale: "rows", label: "Rows/s", stroke: ink("good"), size: 40, space: 24, side: 1, grid: { show: false } }),
    ],
    series: [{}, line("slots", "accent", ink("accent", "24")), line("rows", "good")],
  }, steps());
  readByKeys(element, chart);
  return chart;
}

function summary() {
  const sum = (part) => course.points.reduce((all, point) => all + point[part], 0);
  const seconds = sum(1);
  if (!seconds) return isLive() ? "The chart appears after a few seconds." : "No data: the job ran for too short a time.";
  const used = sum(2) / seconds;
  return `On average ${used.toFixed(1)}${used <= course.slots ? ` of ${course.slots}` : ""} slots in use and ${(sum(3) / seconds).toFixed(2)} rows/s while running.`;
}

async function read() {
  const answer = await fetch(element.dataset.throughput);
  if (answer.ok) {
    course = await answer.json();
    element.hidden = course.points.length === 0;
    if (chart) chart.setData(steps());
    else if (!element.hidden) chart = make();
    said.textContent = summary();
  }
  if (isLive()) setTimeout(read, EVERY_MS);
}

let wasLive = isLive();
document.addEventListener("htmx:afterSettle", () => {
  if (wasLive && !isLive()) read(); // its last seconds too
  wasLive = isLive();
});
read();
