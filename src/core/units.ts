/**
 * Units of the core. Every quantity that crosses a boundary is a whole number of a small unit, and
 * the alias says which. Conversions live here and nowhere else; a name tells how they round.
 */

/** A point on some clock, in microseconds. Which clock is said where it is used. */
export type InstantUs = number;

/** A span of time in microseconds, never negative. */
export type DurationUs = number;

/** Whole tokens, the unit of permission. */
export type Tokens = number;

/** Tokens per second; a double, used for estimates and answers, never for accounting. */
export type TokensPerSecond = number;

export const US_PER_MS = 1_000;
export const US_PER_SECOND = 1_000_000;

/** Milliseconds, rounded up: a caller that waits this long has waited long enough. */
export function ceilToMs(us: DurationUs): number {
  return Math.ceil(us / US_PER_MS);
}

/** Seconds, rounded up, as Retry-After wants them. */
export function ceilToSeconds(us: DurationUs): number {
  return Math.ceil(us / US_PER_SECOND);
}
