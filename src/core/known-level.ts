/** The level of a key as the store told it: by a call, or in answer to a report. */
import type { Limit } from "./limit.ts";
import { type InstantUs, US_PER_SECOND } from "./units.ts";

export interface KnownLevel {
  readonly level: number;
  readonly at: InstantUs;
}

/** The later word of two; that of the first when they are of one instant. */
export function laterWord(
  one: KnownLevel | undefined,
  other: KnownLevel | undefined,
): KnownLevel | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return other.at > one.at ? other : one;
}

/** Tokens at `now` if nobody has spent any since; a key that nobody has told of is full. */
export function grownLevel(known: KnownLevel | undefined, limit: Limit, now: InstantUs): number {
  if (known === undefined) return limit.burst;
  return Math.min(limit.burst, known.level + (limit.rate * (now - known.at)) / US_PER_SECOND);
}
