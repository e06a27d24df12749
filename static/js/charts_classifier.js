// The confusion matrix and the reliability diagram of a run, drawn by ECharts in the page's colours.

/* global echarts */

import { colours, shares, tooltip } from "./chart_parts.js";
import { alike, shortened } from "./matrix_order.js";

const SHOW_COUNTS_BELOW = 26; // labels across: above, the numbers would not fit into their cells
const NAME_LENGTH = 26;
const LETTER = 6.2; // pixels

const drawn = new Map();

async function draw(section) {
  if (drawn.has(section)) return;
  drawn.set(section, []);
  const answer = await fetch(section.dataset.charts, { headers: { Accept: "application/json" } });
  if (!answer.ok) return;
  const data = await answer.json();
  const charts = [...section.querySelectorAll("[data-chart]")].map((element) => {
    const chart = echarts.init(element, null, { renderer: "canvas" });
    const painter = { matrix, reliability, curve }[element.dataset.chart];
    const order = section.querySelector("[data-matrix-order]");
    const paint = () => painter(chart, data, colours(), order?.value);
    paint();
    if (painter === matrix) order?.addEventListener("change", paint);
    new ResizeObserver(() => chart.resize()).observe(element);
    return paint;
  });
  drawn.set(section, charts);
}

function drawAll() {
  for (const section of document.querySelectorAll("[data-charts]")) draw(section);
}

drawAll();
document.addEventListener("htmx:afterSwap", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const paints of drawn.values()) for (const paint of paints) paint();
});

function matrix(chart, data, c, ordered) {
  const { labels, support } = data;
  const order = ordered === "alike" ? alike(data.cells, support) : [...labels.keys()];
  const place = [];
  for (const [at, label] of order.entries()) place[label] = at;
  const cells = data.cells.map(([truth, predicted, count]) => ({
    value: [place[predicted], place[truth], count / support[truth]], count, truth, predicted,
  }));
  const right = cells.filter((cell) => cell.truth === cell.predicted);
  const wrong = cells.filter((cell) => cell.truth !== cell.predicted);
  const worst = Math.max(0.05, ...wrong.map((cell) => cell.value[2]));
  const narrow = chart.getWidth() < 560;
  const room = Math.min(narrow ? 90 : 190, 24 + 7 * Math.max(...labels.map((name) => Math.min(name.length, NAME_LENGTH))));
  const axis = (extra) => ({
    type: "category", data: order.map((label) => labels[label]), splitArea: { show: false }, axisTick: { show: false },
    axisLine: { lineStyle: { color: c.line } },
    axisLabel: {
      color: c.quiet, fontSize: 11, width: room - 12, overflow: "truncate", hideOverlap: true,
      formatter: (name) => shortened(name, Math.floor((room - 12) / LETTER)), ...extra,
    },
  });
  const zoom = (extra) => ({ xAxisIndex: null, yAxisIndex: null, filterMode: "empty", ...extra });
  chart.setOption({
    animation: false,
    grid: { left: room, right: 12, top: 8, bottom: room },
    tooltip: tooltip(c, ({ data: cell }) => {
      const share = `${cell.count} of ${support[cell.truth]} rows (${(100 * cell.value[2]).toFixed(1)} %)`;
      const name = labels[cell.truth];
      return cell.truth === cell.predicted ? `${name}\nright: ${share}` : `${name}\ntaken for ${labels[cell.predicted]}\n${share}`;
    }),
    xAxis: { ...axis({ rotate: 60 }), position: "bottom" },
    yAxis: { ...axis({}), inverse: true },
    dataZoom: [
      zoom({ type: "inside", xAxisIndex: 0, minValueSpan: 4 }),
      zoom({ type: "inside", yAxisIndex: 0, minValueSpan: 4 }),
    ],
    visualMap: [
      { show: false, seriesIndex: 0, min: 0, max: 1, dimension: 2, inRange: { color: [c.ground, c.right] } },
      { show: false, seriesIndex: 1, min: 0, max: worst, dimension: 2, inRange: { color: [mix(c.wrong, c.surface, 0.22), c.wrong] } },
    ],
    series: [right, wrong].map((part) => ({
      type: "heatmap", data: part, label: { show: labels.length < SHOW_COUNTS_BELOW, color: c.text, textBorderColor: c.surface, textBorderWidth: 2, fontSize: 11, formatter: ({ data: cell }) => cell.count },
      itemStyle: { borderColor: c.surface, borderWidth: labels.length > 40 ? 0.5 : 1 },
      emphasis: { itemStyle: { borderColor: c.text } },
    })),
  }, { notMerge: true });
  chart.off("datazoom");
  chart.on("datazoom", () => {
    const { start, end } = chart.getOption().dataZoom[0];
    const show = (labels.length * (end - start)) / 100 < SHOW_COUNTS_BELOW;
    chart.setOption({ series: [{ label: { show } }, { label: { show } }] });
  });
}

function reliability(chart, data, c) {
  const most = Math.max(...data.reliability.map((bin) => bin.count));
  const points = data.reliability.map((bin) => ({
    value: [bin.confidence, bin.accuracy], count: bin.count, symbolSize: 6 + 16 * Math.sqrt(bin.count / most),
  }));
  const axis = (name) => ({
    type: "value", min: 0, max: 1, name, nameLocation: "middle", nameGap: 34, nameTextStyle: { color: c.quiet },
    axisLabel: { color: c.quiet, formatter: (share) => `${Math.round(100 * share)} %` },
    splitLine: { lineStyle: { color: c.line } },
  });
  chart.setOption({
    animation: false,
    grid: { left: 58, right: 16, top: 12, bottom: 48 },
    tooltip: tooltip(c, ({ data: point }) => point.count === undefined ? "" :
      `says ${(100 * point.value[0]).toFixed(1)} %\nis right ${(100 * point.value[1]).toFixed(1)} %\n${point.count} rows`),
    xAxis: axis("what it says"),
    yAxis: axis("how often it is right"),
    series: [
      { type: "line", data: [[0, 0], [1, 1]], symbol: "none", silent: true, lineStyle: { color: c.right, type: "dashed" } },
      { type: "line", data: points, symbol: "circle", lineStyle: { color: c.accent }, itemStyle: { color: c.accent } },
    ],
  }, { notMerge: true });
}

// Accuracy on the test rows by how many rows it was trained on, with the interval of each point.
function curve(chart, data, c) {
  const rows = data.curve.map((point) => point.rows);
  const line = (key, extra) => ({ type: "line", data: data.curve.map((point) => [point.rows, point[key]]), ...extra });
  const lowest = Math.min(...data.curve.map((point) => point.low));
  chart.setOption({
    animation: false,
    grid: { left: 58, right: 24, top: 12, bottom: 48 },
    tooltip: tooltip(c, ({ dataIndex }) => {
      const point = data.curve[dataIndex];
      return `${point.rows.toLocaleString("en")} rows\n${(100 * point.accuracy).toFixed(1)} % right\n${(100 * point.low).toFixed(1)} to ${(100 * point.high).toFixed(1)} %`;
    }),
    xAxis: {
      type: "log", min: rows[0], max: rows.at(-1), name: "training rows", nameLocation: "middle", nameGap: 30,
      nameTextStyle: { color: c.quiet }, axisLabel: { color: c.quiet, formatter: (count) => Math.round(count).toLocaleString("en") }, splitLine: { show: false }, minorTick: { show: false },
    },
    yAxis: shares(c, "", { min: Math.max(0, Math.floor(lowest * 10) / 10), max: 1 }),
    series: [
      line("low", { symbol: "none", silent: true, lineStyle: { opacity: 0 }, stack: "interval" }),
      { type: "line", data: data.curve.map((point) => [point.rows, point.high - point.low]), symbol: "none", silent: true, stack: "interval", lineStyle: { opacity: 0 }, areaStyle: { color: c.accent, opacity: 0.14 } },
      line("accuracy", { symbol: "circle", symbolSize: 8, lineStyle: { color: c.accent }, itemStyle: { color: c.accent } }),
    ],
  }, { notMerge: true });
}

// A colour on the way from `to` to `from`, written as ECharts reads it: with commas.
function mix(from, to, share) {
  const [a, b] = [from, to].map((hex) => [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16)));
  return `rgb(${a.map((part, place) => Math.round(part * share + b[place] * (1 - share))).join(",")})`;
}
