// A few words about each group of settings, for the list.

const WORDS = {
  system: ({ system }) => system || "none",
  size: ({ rows, refill }) => `${rows || "?"} rows${refill ? ", refill until accepted" : ""}`,
  variety: ({ temperature, min_p }) => [temperature ? `temperature ${temperature}` : "server default", min_p && `min-p ${min_p}`].filter(Boolean).join(", "),
  reject: ({ near, meaning, test_dataset }) => [near && `near-duplicates above ${near}%`, meaning && `same meaning above ${meaning}%`, test_dataset && "repeats of a test set"].filter(Boolean).join(", ") || "only by the columns’ rules",
  limits: ({ max_tokens, daily_tokens, width }) => [max_tokens && `${max_tokens} tokens per answer`, daily_tokens && `${daily_tokens} a day`, width && `${width} in parallel`].filter(Boolean).join(", ") || "none",
};

export function settingSummaries(editor) {
  const values = Object.fromEntries([...new FormData(editor)].map(([name, value]) => [name, String(value).trim().slice(0, 80)]));
  for (const button of editor.querySelectorAll("[data-group]")) {
    button.querySelector("[data-told]").textContent = WORDS[button.dataset.group](values);
    const group = editor.querySelector(`[data-settings="${button.dataset.group}"]`);
    button.classList.toggle("is-bad", Boolean(group.querySelector(".error:not(:empty)")));
  }
}
