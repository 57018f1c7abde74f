/** The limits in force, as `GET /v1/limits` shows them. */
import type { Limit } from "../core/limit.ts";
import type { LimitStanding } from "../core/mode-choice.ts";
import { US_PER_MS } from "../core/units.ts";

/** Rate, burst and how the limit is kept, with the exact rate beside the rounded one. */
export function describeLimit(limit: Limit, standing: LimitStanding): object {
  return {
    name: limit.name,
    ...describeBucket(limit),
    configured_mode: limit.mode,
    mode: standing.mode,
    mode_reason: standing.reason,
    /** Most that all pods together may admit beyond burst and refill, while the store is there. */
    over_admission_bound: standing.boundTokens,
    reconcile_interval_ms: standing.intervalUs / US_PER_MS,
    fallback: {
      policy: limit.fallback.policy,
      margin: limit.fallback.margin,
      max_pods: limit.fallback.maxPods,
    },
    shadow: limit.shadow,
    overrides: [...limit.overrides].map(([key, override]) => ({
      key,
      ...describeBucket(override),
    })),
  };
}

function describeBucket(limit: Limit): object {
  return {
    rate_per_second: limit.rate,
    /** `tokens` per `period_us`, without rounding. */
    refill: { tokens: limit.refill, period_us: limit.period * limit.tickUs },
    burst: limit.burst,
  };
}
