/** Dynamics, computed from series after a run: settling times, overshoot, oscillation, fairness. */
import type { InstantUs } from "../src/core/units.ts";
import type { Party } from "./recorder.ts";
import { SERIES_STEP_US, type Settling } from "./run-result.ts";
import type { Mark } from "./scenario.ts";

/** Rates are compared over this many steps (500 ms), as single steps are mostly chance. */
const STEPS = 5;
const TOLERANCE = 0.05;

/**
 * How the fleet came back after a mark: the settling time is from the mark to the first 500 ms from
 * which on, until the next mark, the admitted rate stays within 5 % of the ideal's (and three
 * standard deviations of a Poisson count, so that small limits can settle at all).
 */
export function settlingAfter(
  mark: Mark,
  untilUs: InstantUs,
  admitted: ArrayLike<number>,
  ideal: ArrayLike<number>,
): Settling {
  const from = Math.ceil(mark.atUs / SERIES_STEP_US);
  const to = Math.min(admitted.length, Math.floor(untilUs / SERIES_STEP_US));
  let settledStep = from;
  let overshoot = 0;
  for (let step = from; step + STEPS <= to; step += 1) {
    const got = sum(admitted, step, step + STEPS);
    const want = sum(ideal, step, step + STEPS);
    if (want > 0) overshoot = Math.max(overshoot, got / want);
    const allowed = TOLERANCE * want + 3 * Math.sqrt(want);
    if (Math.abs(got - want) > allowed) settledStep = step + STEPS;
  }
  const settled = settledStep + STEPS <= to;
  return {
    name: mark.name,
    atUs: mark.atUs,
    settledAfterUs: settled
      ? Math.max(0, settledStep * SERIES_STEP_US - mark.atUs)
      : Number.POSITIVE_INFINITY,
    overshoot,
    late: Math.max(0, sum(ideal, from, from + 10) - sum(admitted, from, from + 10)),
  };
}

/** Standard deviation of the steps of the last third as a part of their mean; 0 for nothing. */
export function oscillation(series: ArrayLike<number>): number {
  const from = Math.floor((series.length * 2) / 3);
  const count = series.length - from;
  const mean = sum(series, from, series.length) / count;
  if (mean === 0) return 0;
  let squares = 0;
  for (let i = from; i < series.length; i += 1) squares += ((series[i] ?? 0) - mean) ** 2;
  return Math.sqrt(squares / count) / mean;
}

/** Jain's index of admitted over offered: 1 when all parties fare alike, 1/n when one gets all. */
export function fairness(parties: Iterable<Party>): { jain: number; min: number; max: number } {
  let [count, total, squares, min, max] = [0, 0, 0, Number.POSITIVE_INFINITY, 0];
  for (const party of parties) {
    if (party.offered <= 0) continue;
    const ratio = party.admitted / party.offered;
    count += 1;
    total += ratio;
    squares += ratio * ratio;
    min = Math.min(min, ratio);
    max = Math.max(max, ratio);
  }
  if (count === 0 || squares === 0) return { jain: 1, min: count === 0 ? 0 : min, max };
  return { jain: (total * total) / (count * squares), min, max };
}

function sum(series: ArrayLike<number>, from: number, to: number): number {
  let total = 0;
  for (let i = from; i < Math.min(to, series.length); i += 1) total += series[i] ?? 0;
  return total;
}
