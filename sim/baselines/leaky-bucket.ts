/**
 * Central leaky bucket as a meter: what was admitted leaks away at the rate.
 *
 * Rule: excess = max(0, excess - r * passed ms) + cost; deny when it is above the burst. Source:
 * nginx limit_req (ngx_http_limit_req_module.c), which counts thousandths of a request and whole
 * milliseconds. The first request after a rest does not count, so b + 1 pass at once.
 */
import type { InstantUs } from "../../src/core/units.ts";
import { ALLOWED, type Scheme } from "../scheme.ts";
import { type CentralRule, type CentralStore, centralScheme, deniedFor } from "./central.ts";

interface Meter {
  /** Thousandths of a token. */
  excess: number;
  /** Whole milliseconds. */
  lastMs: InstantUs;
  isNew: boolean;
}

export const LEAKY_BUCKET_RULE: CentralRule<Meter> = {
  name: "central-leaky-bucket",
  rule: "a meter that leaks at the rate, one store trip per check",
  source: "nginx limit_req",
  fresh: (_, nowUs) => ({ excess: 0, lastMs: Math.floor(nowUs / 1_000), isNew: true }),
  admit(state, limit, nowUs, cost) {
    const nowMs = Math.floor(nowUs / 1_000);
    const leaked = Math.floor(Math.max(0, nowMs - state.lastMs) * limit.rate);
    const before = state.isNew ? -1_000 : state.excess - leaked;
    const excess = Math.max(0, before + cost * 1_000);
    if (excess > limit.burst * 1_000) {
      return deniedFor(((excess - limit.burst * 1_000) / limit.rate) * 1_000);
    }
    state.isNew = false;
    state.excess = excess;
    state.lastMs = Math.max(state.lastMs, nowMs);
    return ALLOWED;
  },
};

export const LEAKY_BUCKET: Scheme<CentralStore<Meter>> = centralScheme(LEAKY_BUCKET_RULE);
