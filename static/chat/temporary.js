// Temporary chats: the switch on the page of a new one, and what the page of one tells the server.

const STAY_MS = 240_000; // well within the minutes after which a chat that was left is deleted
const button = document.querySelector("[data-temporary]");
const form = document.querySelector("[data-composer]");
const input = form?.querySelector("textarea");

// On the page of a new chat it is switched, from elsewhere that page is opened with it on.
export function toggleTemporary() {
  if (button) return button.click();
  const start = new URL(document.querySelector(".chat-new").href);
  start.searchParams.set("temporary", "1");
  location.assign(start);
}

button?.addEventListener("click", () => {
  const isOn = button.getAttribute("aria-pressed") !== "true";
  button.setAttribute("aria-pressed", isOn);
  form.querySelector("[name=temporary]").disabled = !isOn;
  for (const part of document.querySelectorAll("[data-when-temporary]")) part.hidden = !isOn;
  for (const part of document.querySelectorAll("[data-when-kept]")) part.hidden = isOn;
  [input.placeholder, input.dataset.otherPlaceholder] = [input.dataset.otherPlaceholder, input.placeholder];
  if (matchMedia("(hover: hover)").matches) input.focus();
});

const room = document.querySelector("[data-leave]");

function tell(address) {
  const headers = JSON.parse(document.body.getAttribute("hx-headers"));
  fetch(address, { method: "POST", headers, keepalive: true }).catch(() => null);
}

if (room) {
  const stay = () => tell(room.dataset.stay);
  // A page that is loaded anew is left too, and that may arrive after its next load: so again later.
  stay();
  setInterval(stay, STAY_MS);
  document.addEventListener("visibilitychange", () => document.hidden || stay());
  window.addEventListener("pagehide", () => tell(room.dataset.leave));
}
