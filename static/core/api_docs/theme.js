// Swagger UI is dark where <html> has its class: as the person chose, otherwise as the system is.

const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

function show() {
  const chosen = root.dataset.theme;
  root.classList.toggle("dark-mode", chosen ? chosen === "dark" : system.matches);
}

system.addEventListener("change", show);
show();
