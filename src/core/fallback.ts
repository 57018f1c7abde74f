/**
 * What a pod does alone: a bucket of its part of a stricter limit. With margin m and n pods
 * assumed, every pod refills m*r/n into a bucket of m*b/n, so the fleet admits at most m*r as
 * long as there are no more than n pods. Nothing is refilled by the switch itself: the bucket
 * starts from what the pod still held.
 */
import { type BucketShape, fitShape, type Limit } from "./limit.ts";
import { type DurationUs, type Tokens, US_PER_SECOND } from "./units.ts";

/** A margin is kept in whole thousandths, so that rates stay whole numbers. */
const MARGIN_UNITS = 1_000;

/**
 * The bucket of one pod out of `pods`; always at least one token deep, or it would admit nothing.
 */
export function fallbackShape(limit: Limit, pods: number): BucketShape {
  const margin = Math.max(1, Math.floor(limit.fallback.margin * MARGIN_UNITS));
  const burst = Math.max(1, Math.floor((limit.burst * margin) / (MARGIN_UNITS * pods)));
  const spanUs = limit.period * limit.tickUs * MARGIN_UNITS * pods;
  const exact = fitShape(limit.refill * margin, spanUs, burst, 0);
  if (exact !== undefined) return exact;
  // A fraction too long to count with becomes one token per so many whole microseconds, rounded up:
  // slower by less than a microsecond a token.
  const period = Math.ceil(spanUs / (limit.refill * margin));
  return { refill: 1, period, tickUs: 1, burst, maxDebt: 0 };
}

/**
 * Tokens that a key starts with in the fallback when this pod has never tracked it: it counts as
 * full. Parts below one token are rounded by a fixed draw per pod and key, so that the fleet as a
 * whole has `margin * burst` tokens ready and not a whole token on every pod.
 *
 * @param draw - In [0, 1), the same for the same pod and key.
 */
export function fallbackStart(limit: Limit, pods: number, draw: number): number {
  const part = (limit.fallback.margin * limit.burst) / pods;
  return part >= 1 ? part : Math.min(1, part + draw);
}

/** Tokens per second of the fallback bucket. */
export function fallbackRate(limit: Limit, pods: number): number {
  return (limit.fallback.margin * limit.rate) / pods;
}

/**
 * Tokens of an outage that need not be reported: while the pod was isolated the store refilled and
 * overflowed, so charging all of it would charge twice. Forgiven over all pods is at most what
 * the store lost that way; what the fallback bucket has not regained is always charged.
 *
 * @param unreported - Tokens admitted and not yet reported.
 * @param missing - Tokens missing in the fallback bucket.
 */
export function settled(
  limit: Limit,
  pods: number,
  unreported: Tokens,
  missing: number,
  outageUs: DurationUs,
): Tokens {
  const overflowed = Math.max(0, (limit.rate * outageUs) / US_PER_SECOND - limit.burst);
  return Math.floor(Math.min(Math.max(0, unreported - missing), overflowed / pods));
}
