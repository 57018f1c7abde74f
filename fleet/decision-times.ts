/**
 * How long checks took inside the pods, from the last byte of the request to the answer: their
 * own histogram, which a busy machine and a late generator disturb far less than times measured
 * outside.
 */

const SAMPLE = /^aliquot_decision_duration_seconds_bucket\{([^}]*)\} ([0-9]+)/gm;

/** Checks by upper bound in ms; Infinity for the rest. Not cumulative. */
export type DecisionTimes = ReadonlyMap<number, number>;

/** Reads the buckets of checks over Unix sockets from a page of metrics. */
export function decisionTimesIn(page: string): DecisionTimes {
  const times = new Map<number, number>();
  let before = 0;
  for (const [, labels = "", count = ""] of page.matchAll(SAMPLE)) {
    const bound = /le="([^"]+)"/.exec(labels)?.[1];
    if (bound === undefined || !labels.includes('transport="uds"')) continue;
    const ms = bound === "+Inf" ? Number.POSITIVE_INFINITY : Number(bound) * 1_000;
    times.set(ms, Number(count) - before);
    before = Number(count);
  }
  return times;
}

export function merged(all: readonly DecisionTimes[]): DecisionTimes {
  const sum = new Map<number, number>();
  for (const times of all) {
    for (const [ms, count] of times) sum.set(ms, (sum.get(ms) ?? 0) + count);
  }
  return sum;
}

/** The bound, in ms, below which at least that part of the checks took; NaN without checks. */
export function boundOf(times: DecisionTimes, part: number): number {
  const bounds = [...times.keys()].sort((a, b) => a - b);
  const total = [...times.values()].reduce((sum, count) => sum + count, 0);
  let seen = 0;
  for (const ms of bounds) {
    seen += times.get(ms) ?? 0;
    if (total > 0 && seen >= part * total) return ms;
  }
  return Number.NaN;
}
