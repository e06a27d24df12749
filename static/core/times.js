// Times of the server, which knows no zone but UTC, in the zone of the browser.

const part = (moment, options) => moment.toLocaleString("en-US", options);
const clock = (moment) => part(moment, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const date = (moment) => `${moment.getDate()} ${part(moment, { month: "short" })}`;

const TEXTS = {
  day(moment, now) {
    const yesterday = new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1);
    if (moment.toDateString() === now.toDateString()) return `today ${clock(moment)}`;
    if (moment.toDateString() === yesterday.toDateString()) return "yesterday";
    return moment.getFullYear() === now.getFullYear() ? date(moment) : `${date(moment)} ${moment.getFullYear()}`;
  },
  minute: (moment) => `${date(moment)} ${moment.getFullYear()}, ${clock(moment)}`,
};

function show() {
  const now = new Date();
  for (const time of document.querySelectorAll("time[data-local]")) {
    const text = TEXTS[time.dataset.local](new Date(time.dateTime), now);
    if (time.textContent !== text) time.textContent = text;
  }
}

// Before the browser draws what was swapped in.
for (const event of ["htmx:afterSwap", "htmx:oobAfterSwap"]) document.addEventListener(event, show);
show();
