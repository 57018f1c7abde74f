/**
 * Central sliding window counter: two counters, the previous one weighted by its overlap.
 *
 * Rule: estimate = previous * (1 - elapsed part of the span) + current; admit while estimate + cost
 * is within the limit. Source: Cloudflare, "Counting things, a lot of different things" (2017). It
 * takes the previous span's requests to have come evenly, so its worst error is all of them.
 */
import { ALLOWED, type Scheme } from "../scheme.ts";
import {
  type CentralRule,
  type CentralStore,
  centralScheme,
  countingSpanUs,
  deniedFor,
  tokensPerSpan,
} from "./central.ts";

interface Counters {
  /** Number of the span that `current` counts. */
  span: number;
  current: number;
  previous: number;
}

export const SLIDING_COUNTER_RULE: CentralRule<Counters> = {
  name: "central-sliding-counter",
  rule: "two counters, the previous one by its overlap, one store trip per check",
  source: "Cloudflare 2017",
  fresh: () => ({ span: -1, current: 0, previous: 0 }),
  admit(state, limit, nowUs, cost) {
    const spanUs = countingSpanUs(limit);
    const span = Math.floor(nowUs / spanUs);
    if (span !== state.span) {
      state.previous = span === state.span + 1 ? state.current : 0;
      state.current = 0;
      state.span = span;
    }
    const overlap = 1 - (nowUs - span * spanUs) / spanUs;
    const most = tokensPerSpan(limit);
    if (state.previous * overlap + state.current + cost <= most) {
      state.current += cost;
      return ALLOWED;
    }
    const excess = state.previous * overlap + state.current + cost - most;
    const fallsUs = state.previous > 0 ? (excess / state.previous) * spanUs : spanUs;
    return deniedFor(Math.min(fallsUs, (span + 1) * spanUs - nowUs));
  },
};

export const SLIDING_COUNTER: Scheme<CentralStore<Counters>> = centralScheme(SLIDING_COUNTER_RULE);
