/** "Did you mean": the closest of the names that would have been accepted. */

/** Longer names are not compared: the cost grows with the square of the length. */
const NAME_LENGTH_MAX = 64;

/**
 * The accepted name closest to `name`, when it is close enough to be a slip: at most one edit per
 * three characters. An edit inserts, deletes or replaces a character or swaps two neighbours.
 */
export function closest(name: string, accepted: Iterable<string>): string | undefined {
  if (name.length > NAME_LENGTH_MAX) return undefined;
  const wanted = name.toLowerCase();
  let best: string | undefined;
  let fewest = Math.max(1, Math.floor(name.length / 3)) + 1;
  for (const candidate of accepted) {
    if (candidate.length > NAME_LENGTH_MAX) continue;
    const edits = countEdits(wanted, candidate.toLowerCase());
    if (edits < fewest) [best, fewest] = [candidate, edits];
  }
  return best;
}

/** "; did you mean x?", or nothing when no accepted name is close. */
export function didYouMean(name: string, accepted: Iterable<string>): string {
  const guess = closest(name, accepted);
  return guess === undefined ? "" : `; did you mean ${guess}?`;
}

/** Optimal string alignment distance. */
function countEdits(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last: number[] = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = at(last, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let edits = Math.min(replaced, at(last, j) + 1, at(row, j - 1) + 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) edits = Math.min(edits, at(beforeLast, j - 2) + 1);
      row.push(edits);
    }
    [beforeLast, last] = [last, row];
  }
  return at(last, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}
