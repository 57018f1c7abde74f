/**
 * Two schemes small enough to be right by inspection, and a workload: they test the world itself.
 */

import { MeterBucket } from "../../sim/meter.ts";
import { ALLOWED, DENIED, NO_STORE, type Scheme, type StoreProgram } from "../../sim/scheme.ts";
import { ANY_POD, type Workload } from "../../sim/workload.ts";
import type { Limit } from "../../src/core/limit.ts";

/** Every pod keeps the whole limit for itself. */
export const INDEPENDENT: Scheme = {
  name: "independent",
  rule: "every pod has the whole limit",
  source: "test",
  start: () => ({
    store: NO_STORE,
    node: (context) => {
      const buckets = context.limits.map((limit) => new MeterBucket(limit, context.nowUs()));
      return {
        request(checks, answer) {
          const now = context.nowUs();
          const holds = checks.every((check) => buckets[check.limit]?.holds(now, check.cost));
          if (holds) for (const check of checks) buckets[check.limit]?.take(now, check.cost);
          answer(holds ? ALLOWED : DENIED);
        },
      };
    },
  }),
};

class CentralStore implements StoreProgram {
  buckets: MeterBucket[] = [];

  snapshot(): () => void {
    return () => {};
  }

  clear(): void {
    this.buckets = [];
  }
}

/** One trip to one bucket per check; a failed trip is a denial. */
export const CENTRAL: Scheme<CentralStore> = {
  name: "central",
  rule: "one store trip per check",
  source: "test",
  start: () => ({
    store: new CentralStore(),
    node: (context) => ({
      request(checks, answer) {
        const check = checks[0];
        const limit = context.limits[0];
        if (check === undefined || limit === undefined) throw new Error("one check, one limit");
        context.call({
          keys: [check.key],
          bytes: 0,
          timeoutUs: 50_000,
          run(store, nowUs) {
            store.buckets[0] ??= new MeterBucket(limit, nowUs);
            const holds = store.buckets[0].holds(nowUs, check.cost);
            if (holds) store.buckets[0].take(nowUs, check.cost);
            return holds;
          },
          done: (outcome) => answer(outcome.ok && outcome.reply ? ALLOWED : DENIED),
        });
      },
    }),
  }),
};

/** Poisson arrivals over all pods, `times` the rate of the first limit. */
export function poisson(times: number): Workload {
  return {
    summary: `${times} r, Poisson`,
    start({ random, limits }) {
      const perSecond = times * (limits[0] as Limit).rate;
      const checks = [{ limit: 0, key: "k", cost: 1 }];
      let atUs = 0;
      return {
        next() {
          atUs += random.exponential(1e6 / perSecond);
          return { atUs: Math.floor(atUs), pod: ANY_POD, client: 0, checks };
        },
      };
    },
  };
}
