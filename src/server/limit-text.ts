/**
 * The parts of answers that depend on a limit only, made once per limit instead of once per check.
 */
import type { Limit } from "../core/limit.ts";
import { US_PER_SECOND } from "../core/units.ts";

export interface LimitText {
  /** The name as a JSON string. */
  readonly jsonName: string;
  /** The limit as an item of `RateLimit-Policy`. */
  readonly policy: string;
  /** The limit's `RateLimit` item up to the number of remaining tokens. */
  readonly rateLimit: string;
  readonly burst: string;
  /** `burst, burst;w=seconds`, the limit as draft-polli-03 puts it. */
  readonly draft03: string;
  /** Time in which an empty bucket gets its next token, us. */
  readonly tokenUs: number;
}

/** Keyed by the limit itself: a reload makes new limits, and old ones take their text along. */
const texts = new WeakMap<Limit, LimitText>();

export function textOf(limit: Limit): LimitText {
  const known = texts.get(limit);
  if (known !== undefined) return known;
  const text = describe(limit);
  texts.set(limit, text);
  return text;
}

function describe(limit: Limit): LimitText {
  const name = structuredString(limit.name);
  const seconds = wholeSecondsToFill(limit);
  const w = seconds === undefined ? "" : `;w=${seconds}`;
  return {
    jsonName: JSON.stringify(limit.name),
    policy: `${name};q=${limit.burst}${w}`,
    rateLimit: `${name};r=`,
    burst: String(limit.burst),
    draft03: w === "" ? String(limit.burst) : `${limit.burst}, ${limit.burst}${w}`,
    tokenUs: Math.ceil(US_PER_SECOND / limit.rate),
  };
}

/**
 * The time in which an empty bucket fills, in seconds, when it is a whole number of them: the span
 * to which `q` applies. The field has no fractions, and a rounded span would state another rate.
 */
export function wholeSecondsToFill(limit: Limit): number | undefined {
  const us = BigInt(limit.burst) * BigInt(limit.period) * BigInt(limit.tickUs);
  const perSecond = BigInt(limit.refill) * BigInt(US_PER_SECOND);
  return us % perSecond === 0n ? Number(us / perSecond) : undefined;
}

/** A String of structured fields (RFC 9651). Limit names are a subset of what one can hold. */
function structuredString(name: string): string {
  return `"${name.replace(/[^\x20-\x7e]/g, "?").replace(/["\\]/g, "\\$&")}"`;
}
