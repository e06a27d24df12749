// Near duplicates: every threshold is worked out once by the server, so the slider shows at once
// what it would do.

import { makeChart, tooltip } from "./chart_parts.js";

const AGAIN_MS = 300;
const OFF = 101;
const form = document.getElementById("near");
const slider = form.elements.threshold;
const element = document.getElementById("near-chart");
const said = document.getElementById("near-said");
const button = document.getElementById("near-apply");
let data = null;
let drawn = null;
let asked = 0;

function number(value) {
  return value.toLocaleString("en");
}

function rows(count) {
  return `${number(count)} row${count === 1 ? "" : "s"}`;
}

function write() {
  const step = Number(slider.value);
  const name = step === OFF ? "off" : `${step} %`;
  document.getElementById("near-value").textContent = name;
  slider.setAttribute("aria-valuetext", name);
  if (!data) {
    button.disabled = true;
    return;
  }
  const at = data.steps.indexOf(step);
  const out = at < 0 ? 0 : data.out[at];
  const back = at < 0 ? data.all_back : data.back[at];
  const goes = out ? `${rows(out)} of ${number(data.accepted)} would be rejected` : "No row would be rejected";
  const comes = back ? `, ${number(back)} rejected earlier would come back` : "";
  const kept = data.seen ? ` What you looked at stays: ${rows(data.seen)}.` : "";
  said.textContent = `${goes}${comes}: ${number(data.accepted - out + back)} accepted.${kept}`;
  button.disabled = !out && !back && slider.value === slider.dataset[form.elements.by.value];
  drawn?.repaint();
}

function paint(chart, c) {
  const step = Number(slider.value);
  const labels = ["< 50 %", ...data.steps.map((value) => `${value} %`)];
  const counts = [data.below, ...data.histogram];
  // The first bar is nearly always by far the tallest, and says the least.
  const tallest = Math.max(...data.histogram, 1);
  const cut = data.below > 3 * tallest;
  chart.setOption({
    animation: false,
    grid: { left: 44, right: 12, top: 14, bottom: 40 },
    tooltip: {
      trigger: "axis", axisPointer: { type: "shadow" },
      ...tooltip(c, ([bar]) => (bar.dataIndex
        ? `${rows(counts[bar.dataIndex])}: the most similar earlier row\nhas ${labels[bar.dataIndex]} in common`
        : `${rows(data.below)}: no earlier row has 50 % in common`)),
    },
    xAxis: {
      type: "category", data: labels, name: "in common with the most similar earlier row", nameLocation: "middle", nameGap: 24,
      nameTextStyle: { color: c.quiet }, axisLine: { lineStyle: { color: c.line } }, axisTick: { show: false },
      axisLabel: { color: c.quiet, interval: (at) => at === 0 || (at > 1 && at % 10 === 1) },
    },
    yAxis: { type: "value", minInterval: 1, max: cut ? 2 * tallest : null, axisLabel: { color: c.quiet }, splitLine: { lineStyle: { color: c.line } } },
    series: [{
      type: "bar", barCategoryGap: "12%",
      data: counts.map((value, at) => ({ value, itemStyle: { color: at > 0 && data.steps[at - 1] >= step ? c.warn : c.accent } })),
      label: cut ? { show: true, position: "insideTop", color: c.text, fontSize: 12, formatter: ({ dataIndex, value }) => (dataIndex ? "" : number(value)) } : { show: false },
    }],
  }, { notMerge: true });
}

function show(found) {
  data = found;
  if (data.rows) {
    if (drawn) drawn.repaint();
    else drawn = makeChart(element, paint);
    write();
  } else {
    said.textContent = "No row has a text to compare yet.";
  }
}

async function measure() {
  const mine = asked += 1;
  data = null;
  write();
  said.textContent = "Comparing the rows …";
  for (;;) {
    const answer = await fetch(`${form.dataset.near}?by=${form.elements.by.value}`, { headers: { Accept: "application/json" } });
    const found = answer.ok ? await answer.json() : { error: "The rows could not be compared: try again." };
    if (mine !== asked) return; // something else was asked for meanwhile
    if (found.error) {
      said.textContent = found.error;
      return;
    }
    if (found.steps) return show(found);
    said.textContent = `Comparing the rows: ${number(found.done)} of ${number(found.total)} read …`;
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
