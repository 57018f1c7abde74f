/** How long requests took at a steady pace, as figures of a round and as text. */
import { ratioOf, type Spread, spreadOf } from "./rounds.ts";

/** One round; all times in ms from when a request was due to its answer. */
export interface RoundTimes {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly longest: number;
  /** How late requests were sent; part of all the others. */
  readonly lateP99: number;
  readonly answers: number;
}

export function roundTimes(times: readonly number[], late: readonly number[]): RoundTimes {
  const sorted = [...times].sort((a, b) => a - b);
  return {
    p50: partOf(sorted, 0.5),
    p99: partOf(sorted, 0.99),
    p999: partOf(sorted, 0.999),
    longest: sorted.at(-1) ?? Number.NaN,
    lateP99: partOf(
      [...late].sort((a, b) => a - b),
      0.99,
    ),
    answers: sorted.length,
  };
}

/** The least of the sorted numbers that so large a part of them does not exceed. */
export function partOf(sorted: readonly number[], part: number): number {
  return sorted[Math.ceil(part * sorted.length) - 1] ?? Number.NaN;
}

/** Medians of the rounds with the lowest and the highest, and the longest of all. */
export function timesText(rounds: readonly RoundTimes[]): string {
  const of = (pick: (round: RoundTimes) => number): string =>
    spreadText(spreadOf(rounds.map(pick)));
  const longest = Math.max(...rounds.map((round) => round.longest));
  const late = spreadOf(rounds.map(({ lateP99 }) => lateP99)).median;
  return (
    `p50 ${of(({ p50 }) => p50)}, p99 ${of(({ p99 }) => p99)}, p99.9 ${of(({ p999 }) => p999)}, ` +
    `longest ${longest.toFixed(2)}, sent late p99 ${late.toFixed(2)}`
  );
}

/** Ours by theirs, round by round. */
export function p99Ratio(ours: readonly RoundTimes[], theirs: readonly RoundTimes[]): Spread {
  const p99 = (rounds: readonly RoundTimes[]): number[] => rounds.map((round) => round.p99);
  return ratioOf(p99(ours), p99(theirs));
}

export function spreadText({ median, min, max }: Spread, digits = 2): string {
  return `${median.toFixed(digits)} (${min.toFixed(digits)} to ${max.toFixed(digits)})`;
}
