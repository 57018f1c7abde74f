/** A pod that decides from local buckets, one per limit and key, all checks or none. */
import type { Limit } from "../../src/core/limit.ts";
import type { InstantUs } from "../../src/core/units.ts";
import { ALLOWED, type Answer, type SimCheck } from "../scheme.ts";
import type { LocalBucket } from "./local-bucket.ts";

export class PodBuckets {
  readonly #limits: readonly Limit[];
  readonly #make: (limit: Limit, nowUs: InstantUs) => LocalBucket;
  readonly #buckets: readonly Map<string, LocalBucket>[];

  constructor(limits: readonly Limit[], make: (limit: Limit, nowUs: InstantUs) => LocalBucket) {
    this.#limits = limits;
    this.#make = make;
    this.#buckets = limits.map(() => new Map());
  }

  decide(nowUs: InstantUs, checks: readonly SimCheck[]): Answer {
    let [allowed, retryAfterUs] = [true, 0];
    for (const { limit, key, cost } of checks) {
      const bucket = this.#bucket(limit, key, nowUs);
      if (bucket.holds(nowUs, cost)) continue;
      allowed = false;
      retryAfterUs = Math.max(retryAfterUs, bucket.waitUs(cost));
    }
    if (!allowed) return { allowed, retryAfterUs };
    for (const { limit, key, cost } of checks) this.#bucket(limit, key, nowUs).take(cost);
    return ALLOWED;
  }

  /** Other parts of the limits hold from now on. */
  divide(nowUs: InstantUs, ratePart: number, burstPart: number): void {
    for (const buckets of this.#buckets) {
      for (const bucket of buckets.values()) bucket.divide(nowUs, ratePart, burstPart);
    }
  }

  #bucket(limit: number, key: string, nowUs: InstantUs): LocalBucket {
    const [shape, buckets] = [this.#limits[limit], this.#buckets[limit]];
    if (shape === undefined || buckets === undefined) throw new Error(`no limit ${limit}`);
    let bucket = buckets.get(key);
    if (bucket === undefined) {
      bucket = this.#make(shape, nowUs);
      buckets.set(key, bucket);
    }
    return bucket;
  }
}
