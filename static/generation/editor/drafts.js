// What was typed into the editor stays in this browser until the job is started: a reload or a
// closed tab loses nothing. Logging out removes it.

const KEY = `draft:generate:${window.location.pathname}${window.location.search}`;
const DAYS = 7;

export function restore(editor) {
  let stored = null;
  try { stored = JSON.parse(localStorage.getItem(KEY)); } catch { forget(); }
  if (!stored || Date.now() - stored.saved > DAYS * 86_400_000) return false;
  for (const element of editor.querySelectorAll("[name]:not([type=hidden])")) {
    if (element.type === "checkbox") element.checked = stored.fields[element.name] === true;
    else if (element.name in stored.fields) element.value = stored.fields[element.name];
  }
  return true;
}

export function save(editor) {
  const named = [...editor.querySelectorAll("[name]:not([type=hidden])")];
  const fields = Object.fromEntries(named.map((element) => [element.name, element.type === "checkbox" ? element.checked : element.value]));
  try {
    localStorage.setItem(KEY, JSON.stringify({ saved: Date.now(), fields }));
    return true;
  } catch {
    return false; // no room: it is on the page all the same
  }
}

export function forget() {
  localStorage.removeItem(KEY);
}
