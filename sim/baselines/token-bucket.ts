/**
 * Central token bucket: level and instant per key, refilled when asked.
 *
 * Rule: level = min(b, level + r * passed); admit and take while level >= cost. Source: Stripe's
 * script (2017), Bucket4j, upstash/ratelimit. The ideal that the excess is measured against, one
 * store trip per check away.
 */
import type { InstantUs } from "../../src/core/units.ts";
import { ALLOWED, type Scheme } from "../scheme.ts";
import { type CentralRule, type CentralStore, centralScheme, deniedFor } from "./central.ts";

interface Bucket {
  level: number;
  atUs: InstantUs;
}

export const TOKEN_BUCKET_RULE: CentralRule<Bucket> = {
  name: "central-token-bucket",
  rule: "one bucket in the store, one store trip per check",
  source: "Stripe 2017, Bucket4j",
  fresh: (limit, nowUs) => ({ level: limit.burst, atUs: nowUs }),
  admit(state, limit, nowUs, cost) {
    const passedS = Math.max(0, nowUs - state.atUs) / 1e6;
    state.level = Math.min(limit.burst, state.level + passedS * limit.rate);
    state.atUs = Math.max(state.atUs, nowUs);
    if (state.level + 1e-9 >= cost) {
      state.level -= cost;
      return ALLOWED;
    }
    return deniedFor(((cost - state.level) / limit.rate) * 1e6);
  },
};

export const TOKEN_BUCKET: Scheme<CentralStore<Bucket>> = centralScheme(TOKEN_BUCKET_RULE);
