// Quotas of values. Quotas that add up to the number of rows are rescaled when that number changes;
// others stay as they were typed, with a note about what is wrong.

const written = new WeakMap(); // card: its quotas as a person wrote them, where they follow

export function readQuotas(found) {
  const lines = found.querySelector("[data-quotas]")?.value.split("\n") ?? [];
  return lines.map((line) => line.match(/^(.*?)\s*=\s*(\d+)\s*$/)).filter(Boolean).map(([, value, rows]) => [value, Number(rows)]);
}

export function writeQuotas(found, quotas) {
  found.querySelector("[data-quotas]").value = quotas.map(([value, rows]) => `${value} = ${rows}`).join("\n");
}

const sum = (quotas) => quotas.reduce((all, [, rows]) => all + rows, 0);

// So many rows in the proportions of the quotas, whole ones: what is lost by rounding goes to those
// who lost most of it.
export function spread(quotas, rows) {
  const all = sum(quotas);
  const exact = quotas.map(([, share]) => (all ? (rows * share) / all : rows / quotas.length));
  const whole = exact.map(Math.floor);
  const left = rows - whole.reduce((one, other) => one + other, 0);
  const lost = exact.map((share, at) => [share - whole[at], at]).sort(([one, first], [other, second]) => other - one || first - second);
  for (const [, at] of lost.slice(0, left)) whole[at] += 1;
  return quotas.map(([value], at) => [value, whole[at]]);
}

// The quotas were written: do they follow from now on?
export function note(found, rows) {
  const quotas = readQuotas(found);
  if (rows > 0 && sum(quotas) === rows) written.set(found, quotas);
  else written.delete(found);
}

// There are to be so many rows.
export function follow(found, rows) {
  if (rows > 0 && written.has(found)) writeQuotas(found, spread(written.get(found), rows));
}

// What the quotas leave open, or have too much of; `values` are all there are.
export function tell(found, values, rows) {
  const hint = found.querySelector("[data-hint]");
  if (!hint) return;
  const quotas = readQuotas(found);
  const all = sum(quotas);
  const left = quotas.length && rows > 0 ? rows - all : 0;
  const open = values.some((value) => !quotas.some(([name]) => name === value));
  const wrong = left < 0 || (left > 0 && !open);
  hint.textContent = !left ? "" : wrong ? `The quotas add up to ${all.toLocaleString("en")} rows, but the job has ${rows.toLocaleString("en")}.` : `The remaining ${left.toLocaleString("en")} rows go to values without a quota.`;
  hint.classList.toggle("error", wrong);
  const button = found.querySelector("[data-spread]");
  button.hidden = !wrong;
  button.textContent = `Distribute over ${rows.toLocaleString("en")} rows`;
}
