// Names that a column gives to those after it, and a few words about it for the list.

import { forms, read } from "./columns/column_forms.js";

export function namesOf(column) {
  if (column.kind === "structured") return Object.keys(column.schema?.properties ?? {});
  if (column.kind === "judge") return [`${column.name}_reason`, ...(column.criteria ?? []).map((one) => one.name)];
  if (column.kind === "seed" && (column.count ?? 1) === 1) return [column.name, ...seedFields(column).map((field) => `${column.name}_${field}`)];
  return [column.name];
}

function seedFields(column) {
  if (column.fields) return column.fields;
  if (column.dataset) return ["text", "label"];
  const first = (column.text ?? "").split("\n")[0];
  if (column.format === "csv") return first.split(/[,;\t|]/).map((name) => name.trim().replace(/\W+/g, "_")).filter(Boolean);
  if (column.format === "jsonl") {
    try { return Object.keys(JSON.parse(first)); } catch { return ["text"]; }
  }
  return ["text"];
}

// The columns above a form, and the names they give.
export function columnsAbove(found) {
  const all = forms();
  return all.slice(0, all.indexOf(found)).map(read);
}

export const namesAbove = (found) => [...new Set(columnsAbove(found).flatMap(namesOf))].filter(Boolean);

const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

// A few words about a column, for the list.
export function summary(column, quotas) {
  const values = Array.isArray(column.values) ? count(column.values.length, "value") : "";
  switch (column.kind) {
    case "text": return column.checks?.length ? `written, ${count(column.checks.length, "rule")}` : "written by the model";
    case "structured": return `${count(Object.keys(column.schema?.properties ?? {}).length, "field")}, written`;
    case "judge": return judged(column.criteria ?? []);
    case "category":
      if (column.depends_on) return `depends on ${column.depends_on}`;
      return `${values}, ${quotas ? "quotas" : column.weights ? "weighted" : "equal split"}`;
    case "persona": return `${count(column.values?.length ?? 0, "person").replace("persons", "people")} from a list`;
    case "number": return column.min === undefined || column.max === undefined ? "number" : `${column.min} to ${column.max}`;
    case "date": return column.from && column.to ? `${column.from} to ${column.to}` : "date";
    case "uuid": return "random UUID";
    case "seed": return column.dataset || column.stored ? "rows of a dataset" : "pasted rows";
    default: return column.expression ?? "computed";
  }
}

function judged(criteria) {
  const floor = Math.max(0, ...criteria.map((one) => Number(one.at_least) || 0));
  return floor ? `scores, rejects below ${floor}` : "scores the row";
}
