/**
 * The configured name that a mistyped one most likely meant.
 *
 * Edit distance (Levenshtein) with a running best as cut-off, so that a long list of limits costs a
 * caller's typo little.
 */

/** Limit names have at most 63 characters; what is beyond tells nothing about which was meant. */
const COMPARED_MAX = 64;

/** The name in `names` with the fewest edits to `name`; the first wins a tie. */
export function closestName(name: string, names: Iterable<string>): string | undefined {
  const wanted = name.slice(0, COMPARED_MAX);
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of names) {
    if (Math.abs(candidate.length - wanted.length) >= bestDistance) continue;
    const distance = editDistance(wanted, candidate, bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Edits from `a` to `b`, or any number that is at least `cutoff` once that is certain. */
function editDistance(a: string, b: string, cutoff: number): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    let least = i;
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const distance = Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1);
      next.push(distance);
      if (distance < least) least = distance;
    }
    if (least >= cutoff) return cutoff;
    row = next;
  }
  return row[b.length] ?? 0;
}
