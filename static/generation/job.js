// Notifies people who asked for it when the job has ended. The parts of the page are replaced while
// the job runs, so the listeners are on the document.

const ENDED = ["done", "failed", "cancelled", "paused"];
let wanted = false;

document.addEventListener("click", async (event) => {
  if (event.target.id !== "notify") return;
  wanted = (await Notification.requestPermission()) === "granted";
  offer();
});

document.addEventListener("htmx:afterSettle", () => {
  const progress = document.getElementById("progress");
  if (wanted && ENDED.includes(progress.dataset.status)) {
    wanted = false;
    const body = `${progress.dataset.status}: ${progress.dataset.done}`;
    new Notification(document.getElementById("job-name").textContent.trim(), { body });
  }
  offer();
});

// Only where the browser can do it and nobody has said no.
function offer() {
  const button = document.getElementById("notify");
  if (button) button.hidden = wanted || !("Notification" in window) || Notification.permission === "denied";
}

offer();
