/** What the pod has observed of itself, as the ops listener shows it. */

/** Decisions per second by outcome. */
export type OutcomeRates = readonly [allowed: number, denied: number, shadowDenied: number];

/** One number per second from `first` on, oldest first; NaN where nothing is known. */
export interface HistoryColumns {
  readonly first: number;
  readonly allowed: readonly number[];
  readonly denied: readonly number[];
  readonly shadowDenied: readonly number[];
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
  readonly perSecond: number;
}

/** The keys that are asked for most, and those that are denied most. */
export interface KeyFigures {
  readonly sampledEvery: number;
  readonly busiest: readonly RankedKey[];
  readonly mostDenied: readonly RankedKey[];
}

export interface Observed {
  readonly history: PastSeconds;
  readonly keys: { figures(most: number): KeyFigures };
}
