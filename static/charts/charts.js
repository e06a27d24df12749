// Shared parts of charts: uPlot in the page's colours and the size of its box, and a tooltip for
// the point under the pointer.

/* global uPlot */

const FONT = "12px Inter, system-ui, sans-serif";
const AWAY = 12; // pixels from the pointer to the tip
const LOW = 2; // tips
const darkSystem = matchMedia("(prefers-color-scheme: dark)");
const drawn = new Set();
let known = null;

// The page's colours as they are now; a chart asks for them each time it is drawn.
export function colours() {
  return known ??= read();
}

// A token is `light-dark(#…, #…)`: uPlot and canvases take one colour, not a pair.
function read() {
  const style = getComputedStyle(document.documentElement);
  const isDark = style.colorScheme === "dark" || (style.colorScheme !== "light" && darkSystem.matches);
  const get = (name) => {
    const [light, dark = light] = style.getPropertyValue(`--${name}`).match(/#\w+/g);
    return isDark ? dark : light;
  };
  return {
    text: get("text"), quiet: get("text-2"), line: get("line"), strong: get("line-2"), sheet: get("sheet"),
    fill: get("fill"), accent: get("accent"), good: get("good"), warn: get("warn"), bad: get("bad"),
  };
}

darkSystem.addEventListener("change", () => {
  known = null;
  for (const chart of drawn) chart.redraw();
});

// A colour as uPlot takes a stroke or a fill; `strength` in two hexadecimal digits.
export function ink(name, strength = "") {
  return () => colours()[name] + strength;
}

export function axis(more) {
  return {
    stroke: ink("quiet"), font: FONT, labelFont: FONT, labelGap: 0, labelSize: 18, gap: 6,
    ticks: { show: false }, ...more, grid: { stroke: ink("line"), width: 1, ...more.grid },
  };
}

// What an axis of shares from 0 to 1 says.
export function percents(chart, shares) {
  return shares.map((share) => `${Math.round(1000 * share) / 10}%`);
}

// What an axis of seconds since 1970 says, as exactly as its marks are apart.
export function clock(chart, seconds, place, space, apart) {
  const exact = apart < 60 ? { second: "2-digit" } : {};
  const far = apart >= 86_400;
  return seconds.map((second) => {
    const time = new Date(1000 * second);
    return far ? time.toLocaleDateString([], { day: "numeric", month: "short" })
      : time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...exact });
  });
}

// A chart as large as its element, for as long as that is on the page. `tell(chart)` is what the
// tip says, line by line; where it says nothing there is no tip.
export function makeChart(element, { tell, plugins = [], ...options }, data) {
  const size = () => ({ width: element.clientWidth, height: element.clientHeight });
  const cursor = { drag: { x: false, y: false }, ...options.cursor };
  const chart = new uPlot({
    legend: { show: false }, ...size(), ...options, cursor, plugins: [...plugins, tip(tell)],
  }, data, element);
  drawn.add(chart);
  new ResizeObserver((sizes, watch) => {
    if (element.isConnected) {
      if (element.clientWidth) chart.setSize(size());
    } else { // htmx took it away
      watch.disconnect();
      drawn.delete(chart);
      chart.destroy();
    }
  }).observe(element);
  return chart;
}

// The arrows go from point to point, where the chart can have the focus.
export function readByKeys(element, chart) {
  element.tabIndex = 0;
  element.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const last = chart.data[0].length - 1;
    const at = Math.min(last, Math.max(0, (chart.cursor.idx ?? (step > 0 ? -1 : last + 1)) + step));
    chart.setCursor({ left: chart.valToPos(chart.data[0][at], "x"), top: chart.over.clientHeight / 2 });
  });
  element.addEventListener("blur", () => chart.setCursor({ left: -10, top: -10 }));
}

function tip(tell) {
  const box = document.createElement("div");
  box.className = "chart-tip number";
  box.hidden = true;
  const say = (chart) => {
    const { left, top } = chart.cursor;
    const text = left >= 0 ? tell(chart) : "";
    box.hidden = !text;
    if (!text) return;
    box.textContent = text;
    // Beside the pointer, on the side with room, and never outside of the chart.
    const room = chart.root.clientWidth - chart.over.offsetLeft - box.offsetWidth;
    const beside = left + AWAY <= room ? left + AWAY : left - AWAY - box.offsetWidth;
    const x = Math.max(-chart.over.offsetLeft, Math.min(room, beside));
    const height = chart.over.clientHeight;
    const low = height < LOW * box.offsetHeight; // it would hide what it tells of: above, then
    const y = low ? -box.offsetHeight : Math.min(top + AWAY, height - box.offsetHeight);
    box.style.transform = `translate(${x}px, ${y}px)`;
  };
  return { hooks: { init: (chart) => { chart.over.append(box); }, setCursor: say } };
}
