/**
 * What the log says about keys that the store drops by itself: once that its server may do so, and
 * that it did, at most once an hour.
 */
import type { Logger } from "pino";
import type { Counts } from "../core/tally.ts";
import { type InstantUs, US_PER_SECOND } from "../core/units.ts";

const LINE_INTERVAL_US = 3_600 * US_PER_SECOND;

export class EvictionLog {
  readonly #logger: Logger;
  readonly #policies = new Set<string>();
  #lostKeys = 0;
  #loggedAtUs: InstantUs = Number.NEGATIVE_INFINITY;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** The server evicts when it is full. @param policy - Its `maxmemory-policy`. */
  mayEvict(policy: string): void {
    if (this.#policies.has(policy)) return;
    this.#policies.add(policy);
    this.#logger.warn(
      { policy },
      "the Redis server evicts keys when its memory is full, and an evicted key is a full bucket " +
        "to pods that have not heard of it for some seconds: set maxmemory-policy noeviction",
    );
  }

  /** @param nowUs - Monotonic time. */
  look(nowUs: InstantUs, { limits }: Pick<Counts, "limits">): void {
    if (nowUs - this.#loggedAtUs < LINE_INTERVAL_US) return;
    const lost = limits.filter(({ tally }) => tally.lostKeys > 0);
    const sum = lost.reduce((total, { tally }) => total + tally.lostKeys, 0);
    // A limit that a reload has removed takes its count along.
    const keys = sum - Math.min(sum, this.#lostKeys);
    this.#lostKeys = sum;
    if (keys === 0) return;
    this.#loggedAtUs = nowUs;
    this.#logger.warn(
      { keys, limits: lost.map(({ name }) => name) },
      "keys were gone from the store before their buckets could be full, and start low: it evicts" +
        " them (maxmemory-policy of Redis; without Redis keys_max), somebody deletes them, or the" +
        " clock of Redis was set forward",
    );
  }
}
