// The two gates, worked here while somebody drags a slider: the rows are few and come once.

import { makeChart, shares, tooltip } from "./chart_parts.js";

const form = document.querySelector("[data-gates]");
if (form) start(form);

async function start(form) {
  const unsure = form.elements.unsure;
  const kept = form.elements.kept;
  write(unsure, kept);
  const answer = await fetch(form.dataset.gates, { headers: { Accept: "application/json" } });
  if (!answer.ok) return;
  const data = await answer.json();
  const saved = [unsure.value, kept.value].join();
  const { repaint } = makeChart(document.querySelector("[data-chart=gates]"), (chart, c) =>
    draw(chart, c, data, Number(unsure.value), limitOf(data, Number(kept.value))));
  const update = () => {
    write(unsure, kept);
    show(form, data, Number(unsure.value), limitOf(data, Number(kept.value)));
    form.querySelector("[data-gate=changed]").hidden = [unsure.value, kept.value].join() === saved;
    repaint();
  };
  form.addEventListener("input", update);
  update();
}

function write(unsure, kept) {
  document.getElementById("gate-unsure-value").textContent = percent(Number(unsure.value), 0);
  const turned = 1 - Number(kept.value);
  document.getElementById("gate-kept-value").textContent = turned < 0.001 ? "none" : percent(turned, 1);
}

// The largest logit below which a text is turned away, for a share of proper texts to keep.
function limitOf(data, kept) {
  let best = data.limits[0];
  for (const step of data.limits) if (Math.abs(step[0] - kept) < Math.abs(best[0] - kept)) best = step;
  return best[1] === null ? -Infinity : best[1];
}

function pass(rows, unsure, limit) {
  const found = { rows: rows.length, answered: 0, right: 0, unsure: 0, none: 0 };
  for (const [confidence, logit, right] of rows) {
    if (logit < limit) found.none += 1;
    else if (confidence < unsure) found.unsure += 1;
    else { found.answered += 1; found.right += right; }
  }
  return found;
}

function show(form, data, unsure, limit) {
  const found = pass(data.rows, unsure, limit);
  const strange = pass(data.strange, unsure, limit);
  const put = (name, text) => { form.querySelector(`[data-gate=${name}]`).textContent = text; };
  put("coverage", share(found.answered, found.rows));
  put("precision", share(found.right, found.answered));
  put("unsure", found.unsure.toLocaleString("en"));
  put("none", found.none.toLocaleString("en"));
  put("recall", share(strange.rows - strange.answered, strange.rows));
}

function draw(chart, c, data, unsure, limit) {
  const points = [];
  for (let at = 0; at < 100; at += 1) {
    const found = pass(data.rows, at / 100, limit);
    if (found.answered >= 10) points.push([found.answered / found.rows, found.right / found.answered, at / 100]);
  }
  const here = pass(data.rows, unsure, limit);
  const lowest = Math.min(...points.map((point) => point[1]), 1);
  const narrow = chart.getWidth() < 500;
  chart.setOption({
    animation: false,
    grid: { left: 62, right: 22, top: 16, bottom: 48 },
    tooltip: tooltip(c, ({ value }) => value[2] === undefined ? "here" :
      `below ${percent(value[2], 0)}: “unsure”\n${percent(value[0], 1)} get a label\n${percent(value[1], 1)} of them are right`),
    xAxis: shares(c, "texts that get a label", { min: 0, max: 1, splitNumber: narrow ? 3 : 5 }),
    yAxis: shares(c, narrow ? "right" : "labels that are right", { min: Math.floor(lowest * 20) / 20, max: 1, nameGap: 46 }),
    series: [
      { type: "line", data: points, symbol: "circle", symbolSize: 5, lineStyle: { color: c.accent, width: 2 }, itemStyle: { color: c.accent } },
      {
        type: "scatter", data: here.answered ? [[here.answered / here.rows, here.right / here.answered]] : [],
        symbolSize: 16, itemStyle: { color: "transparent", borderColor: c.text, borderWidth: 2 }, z: 5,
      },
    ],
  }, { notMerge: true });
}

function share(part, whole) {
  return whole ? percent(part / whole, 1) : "–";
}

function percent(value, digits) {
  return `${(100 * value).toFixed(digits)} %`;
}
