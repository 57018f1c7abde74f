/**
 * The limits that callers bring, counted.
 *
 * The engine knows one limit for all of them, and every key brings its shape; so nothing here is
 * needed to decide. What is kept is how many there are: a caller that makes up parameters by
 * mistake shall be told, and not fill the pod's table of keys with buckets that are used once.
 */
import { shapePrefix } from "../../core/shaped-limits.ts";
import type { DurationUs, InstantUs, Tokens } from "../../core/units.ts";

/** What a caller says about a limit. */
export interface InlineTerms {
  readonly tokens: Tokens;
  readonly spanSeconds: number;
  readonly burst: Tokens;
}

/** One limit that a caller brought. */
export interface InlineLimit extends InlineTerms {
  /** What its keys begin with. */
  readonly prefix: string;
  /** From then on all its buckets in this pod are full. */
  fullAt: InstantUs;
}

export class InlineLimits {
  readonly #most: () => number;
  readonly #byPrefix = new Map<string, InlineLimit>();
  #last: InlineLimit | undefined;
  /** No limit becomes idle earlier. */
  #idleFrom: InstantUs = Number.NEGATIVE_INFINITY;

  /** @param most - Most limits at one time; a reload may change it. */
  constructor(most: () => number) {
    this.#most = most;
  }

  get size(): number {
    return this.#byPrefix.size;
  }

  get most(): number {
    return this.#most();
  }

  /** The limit with these terms; undefined when there are too many others. */
  find(terms: InlineTerms, now: InstantUs): InlineLimit | undefined {
    const last = this.#last;
    if (last !== undefined && isSame(last, terms)) return last;
    const prefix = shapePrefix(terms.tokens, terms.spanSeconds, terms.burst);
    const known = this.#byPrefix.get(prefix);
    if (known !== undefined) {
      this.#last = known;
      return known;
    }
    if (this.size >= this.#most()) this.#forgetIdle(now);
    if (this.size >= this.#most()) return undefined;
    const { tokens, spanSeconds, burst } = terms;
    const added: InlineLimit = { tokens, spanSeconds, burst, prefix, fullAt: now };
    this.#byPrefix.set(prefix, added);
    this.#idleFrom = Number.NEGATIVE_INFINITY;
    this.#last = added;
    return added;
  }

  /** A bucket of the limit was looked at. @param resetAfter - Until it is full. */
  note(limit: InlineLimit, now: InstantUs, resetAfter: DurationUs): void {
    if (now + resetAfter > limit.fullAt) limit.fullAt = now + resetAfter;
  }

  /** A limit whose buckets are all full is as one that was never used. */
  #forgetIdle(now: InstantUs): void {
    if (now < this.#idleFrom) return;
    this.#idleFrom = Number.POSITIVE_INFINITY;
    for (const [prefix, limit] of this.#byPrefix) {
      if (limit.fullAt <= now) this.#byPrefix.delete(prefix);
      else this.#idleFrom = Math.min(this.#idleFrom, limit.fullAt);
    }
    this.#last = undefined;
  }
}

function isSame(a: InlineTerms, b: InlineTerms): boolean {
  return a.tokens === b.tokens && a.spanSeconds === b.spanSeconds && a.burst === b.burst;
}
