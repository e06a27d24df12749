// Where what is typed waits until it is sent: of a temporary chat only until its tab is closed.

export const store = document.querySelector("[data-leave]") ? sessionStorage : localStorage;
