// What the charts share: the page's colours, their tooltip, and being drawn again when these change.

/* global echarts */

export function colours() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: get("text"), quiet: get("text-2"), line: get("line"), surface: get("surface"),
    ground: get("surface-2"), right: get("line-strong"), wrong: get("bad"), accent: get("accent"),
    good: get("good"), warn: get("warn"),
  };
}

export function tooltip(c, formatter) {
  return {
    renderMode: "richText", confine: true, formatter,
    backgroundColor: c.surface, borderColor: c.line, textStyle: { color: c.text, fontSize: 13 },
  };
}

// An axis of shares from 0 to 1, written in percent.
export function shares(c, name, extra = {}) {
  return {
    type: "value", name, nameLocation: "middle", nameGap: 34, nameTextStyle: { color: c.quiet },
    axisLabel: { color: c.quiet, formatter: (share) => `${Math.round(1000 * share) / 10} %` },
    splitLine: { lineStyle: { color: c.line } }, ...extra,
  };
}

// Makes a chart in an element; `paint(chart, colours)` is called now and whenever colours change.
export function makeChart(element, paint, options = {}) {
  const chart = echarts.init(element, null, { renderer: "canvas", ...options });
  const repaint = () => paint(chart, colours());
  repaint();
  new ResizeObserver(() => chart.resize()).observe(element);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  return { chart, repaint };
}
