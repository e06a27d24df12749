// Decide: the point on the curve and the thresholds of labels, evaluated in the browser while they move.
// Nothing acts before it is saved.

import { axis, colours, ink, makeChart, percents } from "../charts/charts.js";

/* global uPlot */

const form = document.querySelector("[data-thresholds]");
if (form) start(form);

async function start(form) {
  const answer = await fetch(form.dataset.thresholds, { headers: { Accept: "application/json" } });
  if (!answer.ok) return;
  const data = await answer.json();
  const page = new Page(form, data);
  form.addEventListener("input", (event) => page.moved(event.target));
  form.addEventListener("dblclick", (event) => page.reset(event.target));
  form.addEventListener("reset", () => setTimeout(() => page.discarded()));
  for (const preset of form.querySelectorAll(".preset")) preset.addEventListener("click", () => page.move(Number(preset.dataset.kept)));
  form.querySelector("[data-more-labels]")?.addEventListener("click", ({ target }) => {
    document.getElementById(target.getAttribute("aria-controls")).hidden = false;
    target.remove();
  });
  page.show();
}

class Page {
  constructor(form, data) {
    this.form = form;
    this.data = data;
    this.kept = form.elements.kept;
    this.strictness = form.querySelector("[data-strictness]");
    this.strictness.value = this.strictness.defaultValue = 1 - this.kept.value;
    this.unsure = form.elements.unsure;
    this.lines = [...form.querySelectorAll("tr[data-label]")];
    this.own = new Set(this.lines.filter((line) => !("default" in line.dataset)));
    this.saved = { own: new Set(this.own), kept: this.kept.value, text: this.text() };
    this.curve = curveOf(data);
    this.repaint = makeCurve(form.querySelector("[data-chart=decide]"), this.curve, () => this.step(), (step) => this.move(data.steps[step]), this.presetSteps());
  }

  presetSteps() {
    return [...this.form.querySelectorAll(".preset")].map(({ dataset }) => this.data.steps.findIndex((kept) => Math.abs(kept - dataset.kept) < 1e-6));
  }

  step() {
    let best = 0;
    for (const [at, kept] of this.data.steps.entries()) if (Math.abs(kept - this.kept.value) < Math.abs(this.data.steps[best] - this.kept.value)) best = at;
    return best;
  }

  move(kept) {
    this.kept.value = kept.toFixed(4);
    this.strictness.value = 1 - kept;
    this.show();
  }

  moved(input) {
    if (input === this.strictness) this.kept.value = (1 - input.value).toFixed(4);
    const line = input.closest("tr[data-label]");
    if (line) {
      if (input.value === this.unsure.value) this.own.delete(line);
      else this.own.add(line);
    }
    this.show();
  }

  reset(target) {
    const line = target.closest?.("tr[data-label]");
    if (!line) return;
    this.own.delete(line);
    this.show();
  }

  discarded() {
    this.own = new Set(this.saved.own);
    this.kept.value = this.saved.kept;
    this.show();
  }

  text() {
    return [this.kept.value, this.unsure.value, ...[...this.own].map((line) => `${line.dataset.label}:${slider(line).value}`).sort()].join();
  }

  // The minimum confidence of each label.
  least() {
    const found = [];
    for (const line of this.lines) found[line.dataset.label] = Number(this.own.has(line) ? slider(line).value : this.unsure.value);
    return found;
  }

  show() {
    for (const line of this.lines) this.showLine(line);
    this.unsure.nextElementSibling.textContent = percent(this.unsure.value);
    document.querySelector("#default-tick option").value = this.unsure.value;
    const step = this.step();
    const found = measure(this.data.rows, step, this.least());
    for (const line of this.lines) {
      const [said, right, support] = found.labels[line.dataset.label] ?? [0, 0, 0];
      line.querySelector("[data-precision]").textContent = share(right, said);
      line.querySelector("[data-recall]").textContent = share(right, support);
    }
    this.form.querySelector("[data-all-precision]").textContent = share(found.right, found.answered);
    this.form.querySelector("[data-all-recall]").textContent = share(found.right, found.rows);
    this.showPoint(step);
    this.showDeclined(found);
    this.repaint();
  }

  showLine(line) {
    const own = this.own.has(line);
    const input = slider(line);
    line.toggleAttribute("data-default", !own);
    if (own) input.name = input.id;
    else {
      input.removeAttribute("name");
      input.value = this.unsure.value;
    }
    input.nextElementSibling.textContent = percent(input.value);
  }

  showPoint(step) {
    const [lost, caught] = this.curve[step];
    const of = this.data.out_of_scope.length ? "caught" : "of mistakes declined";
    let name = "Custom";
    for (const preset of this.form.querySelectorAll(".preset")) {
      const here = Math.abs(preset.dataset.kept - this.data.steps[step]) < 1e-6;
      preset.setAttribute("aria-pressed", here);
      if (here) name = preset.querySelector("strong").textContent;
    }
    const text = `${name}: ${caught === null ? "–" : percent(caught)} ${of}, ${percent(lost, 1)} lost`;
    document.getElementById("point").textContent = text;
    this.strictness.setAttribute("aria-valuetext", text);
  }

  showDeclined(found) {
    const declined = found.rows - found.answered;
    const count = (number) => number.toLocaleString("en");
    const told = this.form.querySelector("[data-declined]");
    told.textContent = `${count(declined)} of ${count(found.rows)} ${told.dataset.declined} ${declined === 1 ? "is" : "are"} declined.`;
    this.form.querySelector("[data-declined-wrong]").textContent = declined ? `${count(found.wrong - (found.answered - found.right))} of them had a wrong label.` : "";
    const changed = this.text() !== this.saved.text;
    this.form.querySelector("[data-discard]").hidden = !changed;
    this.form.querySelector("[data-save]").disabled = !changed;
  }
}

function slider(line) {
  return line.querySelector("input");
}

// What gets a label, by label too: [given, right, rows that have it].
function measure(rows, step, least) {
  const found = { rows: rows.length, answered: 0, right: 0, wrong: 0, labels: [] };
  const of = (label) => found.labels[label] ??= [0, 0, 0];
  for (const [truth, predicted, confidence, passes] of rows) {
    of(truth)[2] += 1;
    const right = truth === predicted;
    found.wrong += !right;
    if (step < passes || confidence < least[predicted]) continue;
    found.answered += 1;
    of(predicted)[0] += 1;
    if (!right) continue;
    found.right += 1;
    of(predicted)[1] += 1;
  }
  return found;
}

// Of each step: the share of in-scope rows lost, and of out-of-scope rows caught (else of mistakes declined).
function curveOf({ steps, rows, out_of_scope: outside }) {
  const others = outside.length ? outside : rows.filter(([truth, predicted]) => truth !== predicted);
  const rejected = (all, step) => (all.length ? all.filter((row) => step < row[3]).length / all.length : null);
  return steps.map((_, step) => [rejected(rows, step) ?? 0, rejected(others, step)]);
}

function makeCurve(element, curve, step, choose, presets) {
  // Strictest first in the data; the chart goes from nothing lost to the most.
  const points = curve.map(([lost, caught], at) => ({ lost, caught: caught ?? 0, at })).reverse();
  const most = Math.max(0.01, points.at(-1).lost);
  const steepest = points.find((point) => point.caught > 0)?.caught ?? 0;
  const bottom = steepest > 0.3 ? Math.floor(10 * (steepest - 0.05)) / 10 : 0;
  const top = Math.min(1, Math.ceil(10 * (points.at(-1).caught + 0.02)) / 10);
  const here = () => curve[step()];
  const chart = makeChart(element, {
    tell: () => "",
    padding: [14, 14, 0, 0],
    cursor: { x: false, y: false },
    scales: { x: { time: false, range: () => [0, most] }, y: { range: () => [bottom, Math.max(top, bottom + 0.1)] } },
    axes: [
      axis({ label: "in-scope texts lost", size: 24, space: 60, values: percents }),
      axis({ label: element.getAttribute("aria-label").split(" against ")[1], size: 56, space: 40, values: percents }),
    ],
    series: [{}, { stroke: ink("accent"), width: 2, fill: ink("accent", "14"), points: { show: false } }],
    plugins: [{ hooks: { draw: (chart) => { for (const at of presets) paintRing(chart, curve[at], bottom); paintPoint(chart, here(), bottom); } } }],
  }, [points.map((point) => point.lost), points.map((point) => point.caught)]);
  drag(chart, (lost) => {
    let best = points[0];
    for (const point of points) if (Math.abs(point.lost - lost) < Math.abs(best.lost - lost)) best = point;
    choose(best.at);
  });
  return () => chart.redraw(false);
}

// A finger or the mouse anywhere on the chart takes the point along.
function drag(chart, to) {
  const { over } = chart;
  over.style.touchAction = "pan-y";
  const at = (event) => to(chart.posToVal(event.clientX - over.getBoundingClientRect().left, "x"));
  over.addEventListener("pointerdown", (event) => {
    over.setPointerCapture(event.pointerId);
    at(event);
  });
  over.addEventListener("pointermove", (event) => {
    if (over.hasPointerCapture(event.pointerId)) at(event);
  });
}

// Where a preset is.
function paintRing({ ctx, valToPos }, [lost, caught], bottom) {
  if (caught !== null && caught < bottom) return;
  ctx.save();
  ctx.strokeStyle = colours().accent;
  ctx.fillStyle = colours().sheet;
  ctx.lineWidth = 2 * uPlot.pxRatio;
  ctx.beginPath();
  ctx.arc(valToPos(lost, "x", true), valToPos(caught ?? 0, "y", true), 4 * uPlot.pxRatio, 0, 2 * Math.PI);
  ctx.fill();
  ctx.stroke();
  ctx.restore();
}

function paintPoint({ ctx, bbox, valToPos }, [lost, caught], bottom) {
  const [x, y] = [valToPos(lost, "x", true), valToPos(Math.max(bottom, caught ?? 0), "y", true)];
  const ratio = uPlot.pxRatio;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colours().accent;
  ctx.lineWidth = ratio;
  ctx.setLineDash([3 * ratio, 3 * ratio]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(x, y);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.beginPath();
  ctx.arc(x, y, 7 * ratio, 0, 2 * Math.PI);
  ctx.fill();
  ctx.restore();
}

function share(part, whole) {
  return whole ? percent(part / whole) : "–";
}

function percent(value, digits = 0) {
  return `${(100 * value).toFixed(digits)}%`;
}
