// The small charts of a server's card: made once, then only given new numbers.

/* global echarts */

const HEADROOM = 1.15;
const lines = new Map(); // element -> what paints it

export function drawRates(root) {
  for (const [element, line] of lines) {
    if (!element.isConnected) { line.chart.dispose(); line.watch.disconnect(); lines.delete(element); }
  }
  for (const section of root.querySelectorAll("[data-rates]")) {
    const rates = JSON.parse(section.dataset.rates);
    for (const element of section.querySelectorAll("[data-chart]")) show(element, rates);
  }
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const line of lines.values()) { line.shown = ""; paint(line); }
});

function show(element, rates) {
  let line = lines.get(element);
  if (!line) {
    const chart = echarts.init(element, null, { renderer: "canvas" });
    const watch = new ResizeObserver(() => chart.resize());
    watch.observe(element);
    line = { chart, watch, name: element.dataset.chart, shown: "" };
    lines.set(element, line);
  }
  line.rates = rates;
  paint(line);
}

function paint(line) {
  const { start, step } = line.rates;
  const values = line.rates[line.name];
  const shown = `${start} ${values}`;
  if (shown === line.shown) return;
  line.shown = shown;
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const isShare = line.name === "cached";
  const isCount = line.name === "waited";
  const most = isShare ? 1 : Math.max(isCount ? 3 : 10, ...values) * HEADROOM;
  line.chart.setOption({
    animation: false,
    grid: { left: 1, right: 1, top: 4, bottom: 1 },
    tooltip: {
      trigger: "axis", renderMode: "richText", confine: true,
      backgroundColor: colour("surface"), borderColor: colour("line"), padding: 6,
      textStyle: { color: colour("text"), fontSize: 12 },
      formatter: ([point]) => {
        const time = new Date((start + point.dataIndex * step) * 1000).toLocaleTimeString();
        return `${time}  ${said(point.value, isShare, isCount)}`;
      },
    },
    xAxis: {
      type: "category", show: true, boundaryGap: isCount, data: values.map((_, place) => place),
      axisLine: { lineStyle: { color: colour("line-strong") } }, axisTick: { show: false }, axisLabel: { show: false },
      axisPointer: { lineStyle: { color: colour("line-strong") }, label: { show: false } },
    },
    yAxis: { type: "value", show: false, min: 0, max: most },
    series: [{
      type: isCount ? "bar" : "line", data: values, symbol: "circle", symbolSize: 3, showSymbol: isShare,
      itemStyle: { color: colour(isCount ? "warn" : "accent") },
      lineStyle: { color: colour("accent"), width: 1.5 },
      areaStyle: isCount || isShare ? undefined : { color: colour("accent"), opacity: 0.14 },
    }],
  }, { notMerge: true });
}

function said(value, isShare, isCount) {
  if (value === null || value === undefined) return "nothing";
  if (isShare) return `${Math.round(100 * value)} % from the cache`;
  return isCount ? `${value} waited` : `${Math.round(value).toLocaleString()} tokens/s`;
}
