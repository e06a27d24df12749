// Tool servers: buttons that wait for a connection, and the fields of the chosen transport.

document.addEventListener("submit", (event) => {
  if (event.defaultPrevented) return; // not confirmed
  const button = event.target.querySelector("button:not([type=button])");
  if (event.target.method !== "post" || !button || event.target.closest("nav")) return;
  setTimeout(() => { button.disabled = true; button.textContent = "Connecting…"; });
});

// A page that comes back from the history is to be usable again.
window.addEventListener("pageshow", (event) => event.persisted && location.reload());

// Only the fields of the transport that is chosen.
const transport = document.getElementById("id_transport");
const of = { http: ["url", "api_key", "headers"], stdio: ["command", "environment"] };
function show() {
  for (const [kind, names] of Object.entries(of)) {
    for (const name of names) {
      const field = document.getElementById(`id_${name}`)?.closest(".field");
      if (field) field.hidden = kind !== transport.value;
    }
  }
}
transport?.addEventListener("change", show);
if (transport) show();
