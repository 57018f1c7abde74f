/** A check is the question whether a cost may be spent; a decision is the answer to one check. */
import type { Limit } from "./limit.ts";
import type { DurationUs, Tokens } from "./units.ts";

/** A check may name so many limits; what is needed for them is made once. */
export const CHECKS_MAX = 16;

export interface Check {
  readonly limit: Limit;
  /** What a request is counted under; opaque, compared code unit by code unit. */
  readonly key: string;
  /** Whole tokens, 0 or more; 0 peeks: it answers what a cost of 1 would get and spends nothing. */
  readonly cost: Tokens;
}

/**
 * `local`: decided in the pod; `store`: by a reply of the store; `fallback`: store out of reach.
 */
export type Source = "local" | "store" | "fallback";

/**
 * Why a check was denied.
 *
 * `limit_exceeded`: not now, but after `retryAfterUs`. `cost_exceeds_burst`: never, the bucket
 * cannot hold that many tokens. `store_unavailable`: the limit is `closed` and the store is away.
 * `store_timeout`: the store had to be asked and did not answer in time. `store_overloaded`: too
 * many checks wait for it already.
 */
export type DenyReason =
  | "limit_exceeded"
  | "cost_exceeds_burst"
  | "store_unavailable"
  | "store_timeout"
  | "store_overloaded";

export interface Decision {
  readonly limit: Limit;
  /** The verdict to act on; true for a shadow limit even when it would deny. */
  readonly allowed: boolean;
  /** A shadow limit would have denied. */
  readonly wouldDeny: boolean;
  readonly reason: DenyReason | undefined;
  /** Whole tokens of the global limit as this pod sees them, from 0 to the burst. */
  readonly remaining: Tokens;
  /** Time until the bucket is full. */
  readonly resetAfterUs: DurationUs;
  /**
   * 0 when allowed; the shortest wait after which the same check could pass; Infinity for never.
   */
  readonly retryAfterUs: DurationUs;
  readonly source: Source;
  /** The fallback was active for this limit. */
  readonly degraded: boolean;
}

/**
 * The decision that speaks for a whole check: a denial before an admission, the denial with the
 * longest wait, else the admission with the fewest tokens remaining. The first wins a tie.
 *
 * @param decisions - One per limit of the check, at least one.
 */
export function tightest(decisions: readonly Decision[]): Decision {
  return decisions.reduce((best, next) => (isTighter(next, best) ? next : best));
}

/** The answer for a limit that is no longer in force: nothing stands against the check. */
export function undecided(limit: Limit): Decision {
  return {
    limit,
    allowed: true,
    wouldDeny: false,
    reason: undefined,
    remaining: limit.burst,
    resetAfterUs: 0,
    retryAfterUs: 0,
    source: "local",
    degraded: false,
  };
}

function isTighter(next: Decision, best: Decision): boolean {
  if (next.allowed !== best.allowed) return !next.allowed;
  if (!next.allowed) return next.retryAfterUs > best.retryAfterUs;
  return next.remaining < best.remaining;
}
