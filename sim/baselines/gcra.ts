/**
 * Central GCRA: one instant per key, at which the bucket would be full again.
 *
 * Rule: with T = 1/r and tau = b T, admit when max(TAT, t) + n T - t <= tau and set TAT to the left
 * part. Source: ITU-T I.371; brandur/redis-cell, throttled. Equal to a token bucket.
 */
import type { InstantUs } from "../../src/core/units.ts";
import { ALLOWED, type Scheme } from "../scheme.ts";
import { type CentralRule, type CentralStore, centralScheme, deniedFor } from "./central.ts";

interface Arrival {
  /** Theoretical arrival time, us; a double. */
  tatUs: InstantUs;
}

export const GCRA_RULE: CentralRule<Arrival> = {
  name: "central-gcra",
  rule: "theoretical arrival time in the store, one store trip per check",
  source: "ITU-T I.371, redis-cell",
  fresh: (_, nowUs) => ({ tatUs: nowUs }),
  admit(state, limit, nowUs, cost) {
    const emissionUs = 1e6 / limit.rate;
    const nextUs = Math.max(state.tatUs, nowUs) + cost * emissionUs;
    const allowedAtUs = nextUs - limit.burst * emissionUs;
    // A double of an ordinary date in us resolves a quarter of a us.
    if (allowedAtUs <= nowUs + 0.5) {
      state.tatUs = nextUs;
      return ALLOWED;
    }
    return deniedFor(allowedAtUs - nowUs);
  },
};

export const GCRA: Scheme<CentralStore<Arrival>> = centralScheme(GCRA_RULE);
