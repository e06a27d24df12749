// A notification of the browser tells that an answer in a tab that nobody looks at is finished.
// Each browser has to be allowed to show them, so each keeps its own switch.

const KEY = "notify-answers";

export const canNotify = () => "Notification" in window;
export const isBlocked = () => canNotify() && Notification.permission === "denied";
export const notifies = () =>
  canNotify() && Notification.permission === "granted" && localStorage.getItem(KEY) === "1";

/** Ask the browser for permission and keep the switch; true if it is on now. */
export async function setNotifies(isOn) {
  const isAllowed = isOn && (await Notification.requestPermission()) === "granted";
  localStorage.setItem(KEY, isAllowed ? "1" : "0");
  return isAllowed;
}

export function notifyOfAnswer() {
  if (!document.hidden || !notifies()) return;
  const [title] = document.title.replace("● ", "").split(" · ");
  const shown = new Notification(title, { body: "The answer is finished.", tag: location.pathname });
  shown.addEventListener("click", () => {
    window.focus();
    shown.close();
  });
}
