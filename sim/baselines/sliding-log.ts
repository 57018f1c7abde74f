/**
 * Central sliding log: the instants of all admissions of the last span, in a sorted set.
 *
 * Rule: drop entries older than the span; admit while what is left plus the cost is within the
 * limit. Source: the ZADD/ZREMRANGEBYSCORE recipe (Figma, ClassDojo and many others). Exact in
 * every span, at the price of an entry per admitted token.
 */
import type { InstantUs } from "../../src/core/units.ts";
import { ALLOWED, type Scheme } from "../scheme.ts";
import {
  type CentralRule,
  type CentralStore,
  centralScheme,
  countingSpanUs,
  deniedFor,
  tokensPerSpan,
} from "./central.ts";

interface Log {
  entries: { readonly atUs: InstantUs; readonly cost: number }[];
  total: number;
}

export const SLIDING_LOG_RULE: CentralRule<Log> = {
  name: "central-sliding-log",
  rule: "all admissions of the last span, one store trip per check",
  source: "the sorted-set recipe for Redis",
  fresh: () => ({ entries: [], total: 0 }),
  admit(state, limit, nowUs, cost) {
    const spanUs = countingSpanUs(limit);
    const kept = state.entries.findIndex(({ atUs }) => atUs > nowUs - spanUs);
    for (const old of state.entries.splice(0, kept < 0 ? state.entries.length : kept)) {
      state.total -= old.cost;
    }
    if (state.total + cost <= tokensPerSpan(limit)) {
      state.entries.push({ atUs: nowUs, cost });
      state.total += cost;
      return ALLOWED;
    }
    const oldest = state.entries[0];
    return deniedFor(oldest === undefined ? spanUs : oldest.atUs + spanUs - nowUs);
  },
};

export const SLIDING_LOG: Scheme<CentralStore<Log>> = centralScheme(SLIDING_LOG_RULE);
