/**
 * The exact token bucket: one integer, the deficit, says how far below full a bucket is, in
 * token-ticks (tokens missing times `period`). Time takes `refill` off it per tick, a cost adds
 * `cost * period`. Zero is full; more than `burst * period` is debt.
 *
 * It is GCRA with the emission interval kept as a fraction, so nothing is rounded: an instant at
 * which a whole token is back admits it, and a millisecond earlier does not (golang/go#34861).
 */
import { invariant } from "./invariant.ts";
import type { BucketShape } from "./limit.ts";
import type { DurationUs, InstantUs, Tokens } from "./units.ts";

/** Whole ticks since the start of the clock. */
export function toTicks(shape: BucketShape, now: InstantUs): number {
  return Math.floor(now / shape.tickUs);
}

/**
 * The deficit after `ticks` more ticks; ticks that are not positive change nothing, so a clock that
 * goes back credits no stretch of time twice (golang/go#71360).
 */
export function refilled(shape: BucketShape, deficit: number, ticks: number): number {
  if (ticks <= 0 || deficit <= 0) return deficit;
  // Clamped before multiplying: an idle century must not leave the exact integers.
  if (ticks >= Math.ceil(deficit / shape.refill)) return 0;
  return deficit - ticks * shape.refill;
}

/** Whether a bucket with this deficit holds the cost. */
export function covers(shape: BucketShape, deficit: number, cost: Tokens): boolean {
  return deficit + cost * shape.period <= shape.burst * shape.period;
}

/**
 * The deficit after spending (or, when negative, returning) tokens, never fuller than full and
 * never deeper than `maxDebt`.
 */
export function charged(shape: BucketShape, deficit: number, tokens: Tokens): number {
  const deepest = (shape.burst + shape.maxDebt) * shape.period;
  const next = Math.max(0, Math.min(deepest, deficit + tokens * shape.period));
  invariant(Number.isSafeInteger(next), "a deficit must stay a safe integer");
  return next;
}

/** Whole tokens in the bucket; 0 in debt. */
export function wholeTokens(shape: BucketShape, deficit: number): Tokens {
  return Math.max(0, Math.floor((shape.burst * shape.period - deficit) / shape.period));
}

/** Tokens in the bucket as a fraction; negative in debt. */
export function level(shape: BucketShape, deficit: number): number {
  return shape.burst - deficit / shape.period;
}

/**
 * The exact wait until the bucket covers the cost, if nothing else is spent.
 *
 * @param ticksAt - The tick for which `deficit` was computed.
 */
export function waitFor(
  shape: BucketShape,
  deficit: number,
  ticksAt: number,
  cost: Tokens,
  now: InstantUs,
): DurationUs {
  const missing = deficit + cost * shape.period - shape.burst * shape.period;
  if (missing <= 0) return 0;
  const ticks = Math.ceil(missing / shape.refill);
  return Math.max(0, (ticksAt + ticks) * shape.tickUs - now);
}

/** The deficit of a bucket that holds this many tokens, rounded so that none are given away. */
export function deficitOf(shape: BucketShape, tokens: number): number {
  const held = Math.min(tokens, shape.burst);
  return Math.max(0, Math.ceil((shape.burst - held) * shape.period));
}

/**
 * The deficit of the same bucket under another shape: a level is scaled to the new burst, a debt is
 * kept as it is. Scaling can be undone by scaling back, so pods that read an old and a new
 * configuration in turns give nothing away.
 */
export function reshaped(from: BucketShape, to: BucketShape, deficit: number): number {
  const tokens = level(from, deficit);
  const kept = tokens > 0 ? tokens * (to.burst / from.burst) : Math.max(tokens, -to.maxDebt);
  return Math.max(0, Math.ceil((to.burst - kept) * to.period));
}
