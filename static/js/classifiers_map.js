// Ten thousand texts as points. Few series with many points each: ECharts draws such a series in
// one go, which keeps zooming fluid; a series a label would not.

import { makeChart, tooltip } from "./chart_parts.js";

const HUES = 14; // colours to tell neighbours apart by; labels beyond share them
const SIDES = ["training", "test", "out of scope", "without a label"];

const section = document.querySelector("[data-map]");
if (section) start(section);

async function start(section) {
  const answer = await fetch(section.dataset.map, { headers: { Accept: "application/json" } });
  const data = await answer.json();
  const count = section.querySelector("[data-map-count]");
  if (!answer.ok) { count.textContent = data.detail; return; }
  const colourBy = document.getElementById("map-colour");
  const only = document.getElementById("map-label");
  for (const [place, label] of data.labels.entries()) only.add(new Option(label.slice(0, 60), place));
  const { repaint } = makeChart(section.querySelector("[data-chart=map]"), (chart, c) => {
    count.textContent = `${draw(chart, c, data, colourBy.value, only.value).toLocaleString("en")} texts`;
  });
  colourBy.addEventListener("change", repaint);
  only.addEventListener("change", repaint);
}

function draw(chart, c, data, colourBy, only) {
  const wanted = only === "" ? null : Number(only);
  const groups = new Map();
  let shown = 0;
  for (let at = 0; at < data.x.length; at += 1) {
    if (wanted !== null && data.truth[at] !== wanted && data.predicted[at] !== wanted) continue;
    const group = groupOf(data, at, colourBy);
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push([data.x[at], data.y[at], at]);
    shown += 1;
  }
  const axis = { type: "value", scale: true, axisLabel: { show: false }, axisTick: { show: false }, axisLine: { show: false }, splitLine: { lineStyle: { color: c.line } } };
  const before = chart.getOption()?.dataZoom;
  chart.setOption({
    animation: false,
    grid: { left: 6, right: 6, top: 6, bottom: colourBy === "label" ? 6 : 36 },
    legend: colourBy === "label" ? undefined : { bottom: 0, textStyle: { color: c.quiet } },
    tooltip: tooltip(c, ({ value }) => describe(data, value[2])),
    xAxis: axis, yAxis: axis,
    dataZoom: ["xAxisIndex", "yAxisIndex"].map((name, place) => ({
      type: "inside", [name]: 0, filterMode: "none", start: before?.[place].start ?? 0, end: before?.[place].end ?? 100,
    })),
    series: [...groups].sort(([a], [b]) => order(a) - order(b)).map(([group, points]) => ({
      name: String(group), type: "scatter", data: points, large: true, largeThreshold: 500,
      symbolSize: shown > 3000 ? 4 : 6, itemStyle: { color: colourOf(group, c), opacity: 0.75 },
    })),
  }, { notMerge: true });
  return shown;
}

// The wrong ones are drawn last, on top.
function order(group) {
  return group === "wrong" ? 2 : group === "test" ? 1 : 0;
}

function groupOf(data, at, colourBy) {
  if (colourBy === "side") return SIDES[data.side[at]];
  if (data.truth[at] < 0) return SIDES[data.side[at]];
  if (colourBy === "label") return data.truth[at] % HUES;
  return data.truth[at] === data.predicted[at] ? "right" : "wrong";
}

function colourOf(group, c) {
  const named = { right: c.right, wrong: c.wrong, training: c.right, test: c.accent, "out of scope": c.warn, "without a label": c.quiet };
  return named[group] ?? `hsl(${Math.round((group * 360) / HUES)}, ${group % 2 ? 70 : 50}%, ${group % 3 ? 50 : 62}%)`;
}

function describe(data, at) {
  const name = (place) => (place < 0 ? SIDES[data.side[at]] : data.labels[place]);
  const wrong = data.truth[at] >= 0 && data.truth[at] !== data.predicted[at];
  const head = wrong ? `${name(data.truth[at])}, taken for ${name(data.predicted[at])}` : name(data.truth[at]);
  const side = data.side[at] === 0 ? "training row" : data.side[at] === 1 ? "test row" : "";
  return [...wrap(data.text[at]), "", head, side].filter((line, place) => line || place).join("\n");
}

function wrap(text) {
  const lines = [""];
  for (const word of text.split(/\s+/)) {
    if (lines.at(-1).length + word.length > 56 && lines.at(-1)) lines.push("");
    lines[lines.length - 1] += (lines.at(-1) ? " " : "") + word;
  }
  return lines.slice(0, 5);
}
