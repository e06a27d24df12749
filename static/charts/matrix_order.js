// The order of a matrix's labels in which those that are taken for each other stand together.

// Chains of labels, joined along the links from the strongest down, each turned so that the two
// linked labels come close. `cells`: [truth, predicted, count]; the answer: labels by place.
export function alike(cells, support) {
  const size = support.length;
  const links = new Map();
  for (const [truth, predicted, count] of cells) {
    if (truth === predicted) continue;
    const link = Math.min(truth, predicted) * size + Math.max(truth, predicted);
    links.set(link, (links.get(link) ?? 0) + count / Math.max(1, support[truth]));
  }
  const chains = support.map((_, label) => [label]);
  const strongest = [...links].sort(([a, x], [b, y]) => y - x || a - b);
  for (const [link] of strongest) join(chains, Math.floor(link / size), link % size);
  return [...new Set(chains)].sort((a, b) => b.length - a.length).flat();
}

function join(chains, a, b) {
  if (chains[a] === chains[b]) return;
  const [left, right] = [chains[a], chains[b]];
  if (left.indexOf(a) < left.length / 2 - 0.5) left.reverse();
  if (right.indexOf(b) > right.length / 2 - 0.5) right.reverse();
  left.push(...right);
  for (const label of right) chains[label] = left;
}

// Names that begin alike are told apart by how they end: the middle is what can be left out.
export function shortened(name, most) {
  if (name.length <= most) return name;
  const head = Math.ceil((most - 1) / 3);
  return `${name.slice(0, head)}…${name.slice(head + 1 - most)}`;
}
