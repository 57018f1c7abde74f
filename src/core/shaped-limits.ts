/**
 * Overrides whose rate travels in the key.
 *
 * Some callers bring their own limit with a check. Such a limit is no entry of a configuration; it
 * is a function of the key: the key begins with the rate (and the burst, when that is another
 * number than the tokens of the rate), and each key of one rate finds the same limit. So a caller
 * that changes the rate gets another bucket, every pod of a fleet comes to the same limit without
 * being told, and what could grow is only the table of keys, which has its own maximum.
 */
import { defineLimit, type Limit, type LimitSpec } from "./limit.ts";
import { type Tokens, US_PER_SECOND } from "./units.ts";

/** Limits kept ready; when there are more they are made again. */
const READY_MAX = 1_000;

const SHAPE = /^([1-9][0-9]{0,9})\/([1-9][0-9]{0,8})(?:\/([1-9][0-9]{0,9}))? /;

/** Largest tokens and burst, and largest span, that a shape can hold. */
export const SHAPED_TOKENS_MAX: Tokens = 9_999_999_999;
export const SHAPED_SPAN_SECONDS_MAX = 999_999_999;

/** Makes the limit of a shape; undefined when it cannot be counted exactly. */
export type DefineShaped = (
  tokens: Tokens,
  spanSeconds: number,
  burst: Tokens,
) => Limit | undefined;

/** The key under which `key` is counted with a rate and burst of `tokens` per span. */
export function shapedKey(tokens: Tokens, spanSeconds: number, key: string): string {
  return `${tokens}/${spanSeconds} ${key}`;
}

/** What a key begins with that is counted with a burst of its own. */
export function shapePrefix(tokens: Tokens, spanSeconds: number, burst: Tokens): string {
  return `${tokens}/${spanSeconds}/${burst} `;
}

/**
 * A limit whose keys all bring their own rate and burst; its own are never used by those who know
 * it.
 *
 * @param common - What all of them have in common.
 */
export function shapedLimit(
  common: Omit<LimitSpec, "tokens" | "spanUs" | "burst" | "overrides">,
): Limit {
  const overrides = new ShapedLimits((tokens, spanSeconds, burst) => {
    try {
      return defineLimit({ ...common, tokens, spanUs: spanSeconds * US_PER_SECOND, burst });
    } catch (error) {
      if (error instanceof RangeError) return undefined;
      throw error;
    }
  });
  return defineLimit({ ...common, tokens: 1, spanUs: US_PER_SECOND, burst: 1, overrides });
}

/** Overrides with every limit changed, whether they can be listed or not. */
export function mapOverrides(
  overrides: ReadonlyMap<string, Limit>,
  change: (limit: Limit) => Limit,
): ReadonlyMap<string, Limit> {
  if (overrides instanceof ShapedLimits) return overrides.mapped(change);
  return new Map([...overrides].map(([key, limit]) => [key, change(limit)]));
}

/**
 * A map from every shaped key to its limit. It cannot be listed, and seems empty to those who try;
 * `size` says that it may hold a key.
 */
export class ShapedLimits implements ReadonlyMap<string, Limit> {
  readonly size = 1;
  readonly #define: DefineShaped;
  readonly #ready = new Map<string, Limit | undefined>();

  constructor(define: DefineShaped) {
    this.#define = define;
  }

  get(key: string): Limit | undefined {
    const end = key.indexOf(" ");
    const shape = key.slice(0, end + 1);
    if (this.#ready.has(shape)) return this.#ready.get(shape);
    const match = SHAPE.exec(shape);
    if (match === null) return undefined;
    const tokens = Number(match[1]);
    const limit = this.#define(tokens, Number(match[2]), Number(match[3] ?? tokens));
    if (this.#ready.size >= READY_MAX) this.#ready.clear();
    this.#ready.set(shape, limit);
    return limit;
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  /** The same map with every limit changed. */
  mapped(change: (limit: Limit) => Limit): ShapedLimits {
    const define = this.#define;
    return new ShapedLimits((tokens, spanSeconds, burst) => {
      const limit = define(tokens, spanSeconds, burst);
      return limit === undefined ? undefined : change(limit);
    });
  }

  forEach(): void {}

  entries(): MapIterator<[string, Limit]> {
    return new Map<string, Limit>().entries();
  }

  keys(): MapIterator<string> {
    return new Map<string, Limit>().keys();
  }

  values(): MapIterator<Limit> {
    return new Map<string, Limit>().values();
  }

  [Symbol.iterator](): MapIterator<[string, Limit]> {
    return this.entries();
  }
}
