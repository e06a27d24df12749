// The switch for notifications on the settings page: where it cannot work, it says why.

import { canNotify, isBlocked, notifies, setNotifies } from "../thread/notify.js";

const input = document.querySelector("[data-notify]");
const why = document.querySelector("[data-notify-why]");

function show() {
  input.checked = notifies();
  input.disabled = !canNotify() || isBlocked();
  if (!canNotify()) why.textContent = "This browser shows notifications for HTTPS addresses alone.";
  else if (isBlocked()) why.textContent = "This browser blocks notifications of Workbench. Allow them in its site settings.";
}

input.addEventListener("change", async () => {
  await setNotifies(input.checked);
  show();
});
show();
