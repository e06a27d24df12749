// How a job went: slots in use and rows a second. Asked again while the job runs.

import { makeChart, tooltip } from "./chart_parts.js";

const EVERY_MS = 5000;
const STILL_MS = 15_000;
const element = document.querySelector("[data-course]");
const said = document.getElementById("course-said");
let course = { points: [], slots: 0 };
let drawn = null;

function isLive() {
  return document.getElementById("progress")?.hasAttribute("hx-get");
}

// Each point as long as it lasted, with a gap where the job stood still.
function steps(value) {
  return course.points.flatMap((point, at) => {
    const [start, end] = lasted(point);
    const next = course.points[at + 1];
    const rests = next && 1000 * next[0] - end > STILL_MS;
    return [[start, value(point)], [end, value(point)], ...(rests ? [[end, null]] : [])];
  });
}

const lasted = ([start, seconds]) => [1000 * start, 1000 * (start + seconds)];

function told(shown) {
  const said = shown.filter((one) => one.value[1] !== null);
  if (!said.length) return "";
  const lines = new Map(said.map((one) => [one.seriesName, one.value[1].toFixed(2)])); // two where one point ends
  return [new Date(said[0].value[0]).toLocaleTimeString(), ...[...lines].map(([name, value]) => `${name}: ${value}`)].join("\n");
}

function paint(chart, c) {
  const most = Math.max(...course.points.map(([, seconds, slots]) => slots / seconds)); // when it had more of them
  const axis = (name, colour) => ({ type: "value", min: 0, name, nameTextStyle: { color: colour }, axisLabel: { color: c.quiet } });
  const line = (name, colour, data, more) => ({ name, type: "line", showSymbol: false, data, itemStyle: { color: colour }, lineStyle: { width: 1.5 }, ...more });
  chart.setOption({
    animation: false,
    grid: { left: 40, right: 48, top: 28, bottom: 26 },
    tooltip: { trigger: "axis", ...tooltip(c, told) },
    xAxis: {
      // Of the job and nothing else: left alone, the axis of a single point is two days long.
      type: "time", min: lasted(course.points[0])[0], max: lasted(course.points.at(-1))[1],
      axisLabel: { color: c.quiet, hideOverlap: true }, axisLine: { lineStyle: { color: c.line } },
    },
    yAxis: [
      { ...axis("Slots", c.accent), max: Math.max(course.slots, Math.ceil(most - 0.1), 1), minInterval: 1, splitLine: { lineStyle: { color: c.line } } },
      { ...axis("Rows/s", c.good), splitLine: { show: false } },
    ],
    series: [
      line("Slots in use", c.accent, steps(([, seconds, slots]) => slots / seconds), { areaStyle: { opacity: 0.14 } }),
      line("Rows a second", c.good, steps(([, seconds, , rows]) => rows / seconds), { yAxisIndex: 1 }),
    ],
  }, { notMerge: true });
}

function summary() {
  const sum = (part) => course.points.reduce((all, point) => all + point[part], 0);
  const seconds = sum(1);
  if (!seconds) return isLive() ? "Drawn once rows have been at work for some seconds." : "Nothing was recorded: the job did not run long enough.";
  const used = sum(2) / seconds;
  return `On average ${used.toFixed(1)}${used <= course.slots ? ` of ${course.slots}` : ""} slots in use and ${(sum(3) / seconds).toFixed(2)} rows a second while at work.`;
}

async function read() {
  const answer = await fetch(element.dataset.course);
  if (answer.ok) {
    course = await answer.json();
    element.hidden = course.points.length === 0;
    if (drawn) drawn.repaint();
    else if (!element.hidden) drawn = makeChart(element, paint);
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
