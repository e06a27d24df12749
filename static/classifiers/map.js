// Ten thousand texts as points, drawn colour by colour: that keeps zooming fluid.

import { colours, makeChart } from "../charts/charts.js";
import { View } from "../charts/zoom.js";

/* global uPlot */

const HUES = 14; // colours to tell neighbours apart by; labels beyond share them
const NEAREST = 0.02; // of the map, at the nearest
const REACH = 12; // pixels from the pointer to the text it tells of
const [CHOSEN, MISSED, TAKEN, OTHERS] = ["this label", "this label, predicted as another", "another label, predicted as this one", "other texts"];
const SIDES = ["training", "test", "out of scope", "unlabelled"];

const section = document.querySelector("[data-map]");
if (section) start(section);

async function start(section) {
  const answer = await fetch(section.dataset.map, { headers: { Accept: "application/json" } });
  const data = await answer.json();
  const count = section.querySelector("[data-map-count]");
  if (!answer.ok) { count.textContent = data.detail; return; }
  const colourBy = document.getElementById("map-colour");
  let chosen = null; // the label that is highlighted
  const groups = () => grouped(data, colourBy.value, chosen);
  const map = makeMap(section.querySelector("[data-chart=map]"), data, groups());
  const key = section.querySelector("[data-map-key]");
  const show = () => {
    const shown = groups();
    map(shown);
    key.replaceChildren(...(chosen === null && colourBy.value === "label" ? [] : shown.map(([group, texts]) => keyOf(group, texts, data))));
    count.textContent = `${shown.reduce((all, [, texts]) => all + texts.length, 0).toLocaleString("en")} texts`;
  };
  colourBy.addEventListener("change", show);
  const legend = makeLegend(section.querySelector("[data-map-legend]"), data, (label) => {
    chosen = chosen === label ? null : label;
    legend(chosen);
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
}

// The texts of each colour, those last that are to lie on top.
function grouped(data, colourBy, chosen) {
  const groups = new Map();
  for (let at = 0; at < data.x.length; at += 1) {
    const group = chosen === null ? groupOf(data, at, colourBy) : groupByChosen(data, at, chosen);
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push(at);
  }
  return [...groups].sort(([a], [b]) => order(a) - order(b));
}

function keyOf(group, texts) {
  const line = document.createElement("li");
  line.append(dotOf(group), `${group} (${texts.length.toLocaleString("en")})`);
  return line;
}

function dotOf(group) {
  const dot = document.createElement("span");
  dot.className = "map-dot";
  dot.style.background = colourOf(group, colours());
  return dot;
}

// The labels with how many texts each has; pressing one highlights it among all others.
function makeLegend(list, data, choose) {
  const counts = data.labels.map(() => 0);
  for (const truth of data.truth) if (truth >= 0) counts[truth] += 1;
  const buttons = data.labels.map((label, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = label;
    const name = document.createElement("span");
    name.className = "clip";
    name.textContent = label;
    const count = document.createElement("span");
    count.className = "number faint";
    count.textContent = counts[place].toLocaleString("en");
    button.append(dotOf(place % HUES), name, count);
    button.addEventListener("click", () => choose(place));
    const line = document.createElement("li");
    line.append(button);
    list.append(line);
    return button;
  });
  const mark = (chosen) => buttons.forEach((button, place) => button.setAttribute("aria-pressed", place === chosen));
  mark(null);
  return mark;
}

// What shows other groups.
function makeMap(element, data, groups) {
  const view = new View({ x: ends(data.x), y: ends(data.y), least: NEAREST * span(data.x) });
  const axis = { show: false };
  const chart = makeChart(element, {
    tell: (chart) => {
      const at = nearest(chart, data, groups);
      return at < 0 ? "" : describe(data, at);
    },
    cursor: { x: false, y: false },
    scales: { x: { time: false, range: view.range("x") }, y: { range: view.range("y") } },
    axes: [axis, axis],
    series: [{}, { paths: () => null, points: { show: false } }],
    plugins: [view.plugin(), { hooks: { draw: (chart) => paint(chart, data, groups) } }],
  }, [ends(data.x), [null, null]]);
  return (shown) => {
    groups = shown;
    chart.redraw();
  };
}

function span(values) {
  return Math.max(...values) - Math.min(...values) || 1;
}

// With a margin, so that no point lies on the edge.
function ends(values) {
  const margin = 0.03 * span(values);
  return [Math.min(...values) - margin, Math.max(...values) + margin];
}

function paint(chart, data, groups) {
  const { ctx } = chart;
  const shown = groups.reduce((all, [, texts]) => all + texts.length, 0);
  const radius = (shown > 3000 ? 2 : 3) * uPlot.pxRatio;
  const c = colours();
  ctx.save();
  ctx.globalAlpha = 0.75;
  for (const [group, texts] of groups) {
    ctx.fillStyle = colourOf(group, c);
    ctx.beginPath();
    for (const at of texts) {
      const [x, y] = [chart.valToPos(data.x[at], "x", true), chart.valToPos(data.y[at], "y", true)];
      ctx.moveTo(x + radius, y);
      ctx.arc(x, y, radius, 0, 2 * Math.PI);
    }
    ctx.fill();
  }
  ctx.restore();
}

// The text under the pointer, of those on top; -1 where there is none.
function nearest(chart, data, groups) {
  const { left, top } = chart.cursor;
  let found = -1;
  let least = REACH ** 2;
  for (const [, texts] of groups) {
    for (const at of texts) {
      const away = (chart.valToPos(data.x[at], "x") - left) ** 2 + (chart.valToPos(data.y[at], "y") - top) ** 2;
      if (away <= least) [found, least] = [at, away];
    }
  }
  return found;
}

// The wrong ones are drawn last, on top.
function order(group) {
  return { wrong: 3, [MISSED]: 3, [TAKEN]: 3, [CHOSEN]: 2, test: 1, [OTHERS]: -1 }[group] ?? 0;
}

function groupOf(data, at, colourBy) {
  if (colourBy === "side") return SIDES[data.side[at]];
  if (data.truth[at] < 0) return SIDES[data.side[at]];
  if (colourBy === "label") return data.truth[at] % HUES;
  return data.truth[at] === data.predicted[at] ? "correct" : "wrong";
}

// Of one label: its texts, those it should not have, and all others as the ground.
function groupByChosen(data, at, chosen) {
  if (data.truth[at] === chosen) return data.predicted[at] === chosen ? CHOSEN : MISSED;
  return data.truth[at] >= 0 && data.predicted[at] === chosen ? TAKEN : OTHERS;
}

function colourOf(group, c) {
  const named = { [CHOSEN]: c.accent, [MISSED]: c.bad, [TAKEN]: c.warn, [OTHERS]: c.line, correct: c.strong, wrong: c.bad, training: c.strong, test: c.accent, "out of scope": c.warn, "unlabelled": c.quiet };
  return named[group] ?? `hsl(${Math.round((group * 360) / HUES)}, ${group % 2 ? 70 : 50}%, ${group % 3 ? 50 : 62}%)`;
}

function describe(data, at) {
  const name = (place) => (place < 0 ? SIDES[data.side[at]] : data.labels[place]);
  const wrong = data.truth[at] >= 0 && data.truth[at] !== data.predicted[at];
  const head = wrong ? `${name(data.truth[at])}, predicted as ${name(data.predicted[at])}` : name(data.truth[at]);
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
