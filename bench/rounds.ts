/** Numbers of several rounds, and what may be said of them. */

/** Rounds of one thing. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly rounds: readonly number[];
}

/** @param rounds - At least one number. */
export function spreadOf(rounds: readonly number[]): Spread {
  const sorted = [...rounds].sort((a, b) => a - b);
  const middle = sorted.length >>> 1;
  const upper = sorted[middle] ?? Number.NaN;
  const lower = sorted[middle - 1] ?? Number.NaN;
  return {
    median: sorted.length % 2 === 1 ? upper : (lower + upper) / 2,
    min: sorted[0] ?? Number.NaN,
    max: sorted[sorted.length - 1] ?? Number.NaN,
    rounds,
  };
}

/**
 * The ratio of two things that were measured in alternating rounds: the spread of the ratios of
 * neighbours, so that a machine that slows down for a while slows both sides of a ratio.
 */
export function ratioOf(ours: readonly number[], theirs: readonly number[]): Spread {
  return spreadOf(ours.map((value, index) => value / (theirs[index] ?? Number.NaN)));
}
