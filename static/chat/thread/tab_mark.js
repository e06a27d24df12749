// A dot before the title of a tab that nobody looks at tells that its answer is finished.

const MARK = "● ";
let isMarked = false;

export function markTab() {
  isMarked = document.hidden;
  show();
}

function show() {
  const title = document.title.replace(MARK, "");
  const wanted = isMarked ? MARK + title : title;
  if (document.title !== wanted) document.title = wanted;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  isMarked = false;
  show();
});

// A chat gets its title from the model after its first answer.
new MutationObserver(show).observe(document.head, { childList: true, subtree: true, characterData: true });
