/** The engine's decisions as one answer: a denial of any, with the longest wait. */
import type { Decision } from "../src/core/decision.ts";
import type { Answer } from "./scheme.ts";

export function answerOf(decisions: readonly Decision[]): Answer {
  let retryAfterUs = 0;
  let allowed = true;
  let isFallback = false;
  for (const decision of decisions) {
    if (decision.source === "fallback") isFallback = true;
    if (decision.allowed) continue;
    allowed = false;
    retryAfterUs = Math.max(retryAfterUs, decision.retryAfterUs);
  }
  return { allowed, retryAfterUs, isFallback };
}
