// Lines of checks and of judge criteria: flat, with all parts by their names.

import { follow, template } from "../../core/forms/schema_fields.js";

export function readLines(list, numbers) {
  return [...list.children].map((line) => {
    const found = {};
    for (const element of line.querySelectorAll("[data-part]")) {
      if (element.closest("[data-for]")?.hidden) continue;
      const text = element.value.trim();
      if (text) found[element.dataset.part] = numbers.includes(element.dataset.part) ? Number(text) : text;
    }
    return found;
  });
}

export function flatLine(id, data = {}) {
  const line = template(id);
  for (const [key, value] of Object.entries(data)) {
    const element = line.querySelector(`[data-part=${key}]`);
    if (element) element.value = value;
  }
  if (line.querySelector("[data-for]")) follow(line);
  return line;
}
