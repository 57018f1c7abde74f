/** What a pod has observed of itself; `observe` keeps it and the ops listener shows it. */

/** Decisions per second by outcome, in the order of `OUTCOMES`. */
export type OutcomeRates = readonly [allowed: number, denied: number, shadowDenied: number];

/** One number per second from `first` on, oldest first; NaN where nothing is known. */
export interface HistoryColumns {
  /** Seconds of the pod's own clock. */
  readonly first: number;
  readonly allowed: readonly number[];
  readonly denied: readonly number[];
  readonly shadowDenied: readonly number[];
  /** Times of decisions that half, and that 99 of 100, did not exceed, ms. */
  readonly medianMs: readonly number[];
  readonly p99Ms: readonly number[];
  readonly pods: readonly number[];
  readonly trackedKeys: readonly number[];
  /** 0 connected, 1 doubtful, 2 isolated. */
  readonly tier: readonly number[];
}

/** The last minutes, second by second. */
export interface PastSeconds {
  /** The latest second that is known. */
  readonly last: number;
  /** Present rates of one limit, or of all. */
  rates(limit?: string): OutcomeRates;
  /** The course of one limit in few numbers, oldest first. */
  outline(limit: string): {
    readonly admitted: readonly number[];
    readonly denied: readonly number[];
  };
  /** What came after a second, of one limit or of all. */
  columns(after: number, limit?: string): HistoryColumns;
}

export interface RankedKey {
  readonly limit: string;
  readonly key: string;
  /** At least so many checks of the key a second, over the last half minute. */
  readonly perSecond: number;
}

export interface KeyFigures {
  /** One decision in so many is looked at now. */
  readonly sampledEvery: number;
  /** By checks, denied ones included; most first. */
  readonly busiest: readonly RankedKey[];
  /** By denied checks, those of shadow limits included. */
  readonly mostDenied: readonly RankedKey[];
}

export interface Observed {
  readonly history: PastSeconds;
  readonly keys: { figures(most: number): KeyFigures };
}

/** Processes that share the listeners. */
export interface WorkerCounts {
  /** As configured. */
  readonly workers: number;
  /** Those that answer checks now. */
  readonly up: number;
  /** Since the start, those that were replaced. */
  readonly restarts: number;
}
