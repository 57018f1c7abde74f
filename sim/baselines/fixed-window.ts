/**
 * Central fixed window: INCR a counter per aligned span of time and compare, EXPIRE it later.
 *
 * Rule: n += cost for every request, admitted or not; admit while n <= limit. Source:
 * envoyproxy/ratelimit (fixed_cache_impl.go; a denied call counts too, its issue 185), Kong and
 * most tutorials. Twice the limit can pass within one span that lies across an edge.
 */

import type { Scheme } from "../scheme.ts";
import { ALLOWED } from "../scheme.ts";
import {
  type CentralRule,
  type CentralStore,
  centralScheme,
  countingSpanUs,
  deniedFor,
  tokensPerSpan,
} from "./central.ts";

interface Counter {
  /** Number of the span that is counted. */
  span: number;
  count: number;
}

export const FIXED_WINDOW_RULE: CentralRule<Counter> = {
  name: "central-fixed-window",
  rule: "count per aligned span, INCR + EXPIRE, one store trip per check",
  source: "envoyproxy/ratelimit, Kong",
  fresh: () => ({ span: -1, count: 0 }),
  admit(state, limit, nowUs, cost) {
    const spanUs = countingSpanUs(limit);
    const span = Math.floor(nowUs / spanUs);
    if (span !== state.span) {
      state.span = span;
      state.count = 0;
    }
    state.count += cost;
    if (state.count <= tokensPerSpan(limit)) return ALLOWED;
    return deniedFor((span + 1) * spanUs - nowUs);
  },
};

export const FIXED_WINDOW: Scheme<CentralStore<Counter>> = centralScheme(FIXED_WINDOW_RULE);
