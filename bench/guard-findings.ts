/** What the guard counts, and when a count is too high. */

export interface GuardCounts {
  /** Bytes allocated on the heap by one check, or by the reconcile of one key. */
  readonly bytes: number;
  /** Source tokens of the engine executed by it; see `ExecutedSource`. */
  readonly tokens: number;
}

export type Counts = Readonly<Record<string, GuardCounts>>;

/** The growth that fails, and what is allowed besides: a count of 0 grows by any ratio at once. */
const GROWTH_MAX = 0.1;
const BYTES_SLACK = 4;

export interface Baseline {
  /** Major version of Node that was counted. */
  readonly node: number;
  readonly counts: Counts;
}

/** What is wrong with these counts, one sentence each. */
export function findingsOf(counts: Counts, baseline: Counts): string[] {
  const names = new Set([...Object.keys(counts), ...Object.keys(baseline)]);
  return [...names].flatMap((name) => {
    const [now, was] = [counts[name], baseline[name]];
    if (now === undefined || was === undefined) {
      return [`${name}: not in both the run and the baseline; npm run bench:guard -- --write`];
    }
    const grown = (what: string, value: number, before: number, slack: number): string[] =>
      value > before * (1 + GROWTH_MAX) + slack
        ? [`${name}: ${value} ${what}, more than a tenth above the ${before} of the baseline`]
        : [];
    return [
      ...grown("bytes allocated", now.bytes, was.bytes, BYTES_SLACK),
      ...grown("tokens executed", now.tokens, was.tokens, 0),
    ];
  });
}
