// Copying text. `text` may be a promise: a browser allows copying only right after a click.

export async function copy(text) {
  if (window.ClipboardItem && navigator.clipboard?.write) {
    const blob = Promise.resolve(text).then((said) => new Blob([said], { type: "text/plain" }));
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
  } else {
    copyAsOfOld(await text); // a page over plain HTTP has no clipboard of its own
  }
}

function copyAsOfOld(text) {
  const area = document.createElement("textarea");
  area.className = "visually-hidden";
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

// Says on the button itself that it is done.
export async function copyFrom(button, text) {
  const before = button.getAttribute("aria-label") ?? button.textContent.trim();
  const say = (sentence) => {
    if (button.hasAttribute("aria-label")) button.setAttribute("aria-label", sentence);
    else button.textContent = sentence;
  };
  try {
    await copy(text);
    button.classList.add("done");
    say("Copied");
  } catch {
    say("Copy failed");
  }
  setTimeout(() => {
    button.classList.remove("done");
    say(before);
  }, 1500);
}
