/**
 * Decisions as JSON text.
 *
 * Written by hand because this runs once per check: the parts that depend on the limit are ready,
 * and what remains are numbers and words that need no escaping.
 */
import { type Decision, tightest } from "../core/decision.ts";
import { ceilToMs } from "../core/units.ts";
import { textOf } from "./limit-text.ts";

/**
 * The decision that speaks for a check over several limits. A denial for lack of tokens holds
 * whatever a limit that cannot reach its store might have said, so it goes before one of those.
 */
export function speakingDecision(decisions: readonly Decision[]): Decision {
  const [only] = decisions;
  if (decisions.length === 1 && only !== undefined) return only;
  const certain = decisions.filter((each) => !each.allowed && each.reason !== "store_unavailable");
  return tightest(certain.length > 0 ? certain : decisions);
}

/** The answer to a check-body: the speaking decision and, when asked for, a result per check. */
export function checkJson(
  speaking: Decision,
  decisions: readonly Decision[],
  several: boolean,
): string {
  const fields = decisionFields(speaking);
  if (!several) return `{${fields}}`;
  const results = decisions.map((decision) => `{${decisionFields(decision)}}`);
  return `{${fields},"results":[${results.join(",")}]}`;
}

function decisionFields(decision: Decision): string {
  const head =
    `"allowed":${decision.allowed},"limit":${textOf(decision.limit).jsonName},` +
    `"remaining":${decision.remaining},"reset_after_ms":${ceilToMs(decision.resetAfterUs)}`;
  const tail = `,"source":"${decision.source}","degraded":${decision.degraded}`;
  const shadow = decision.wouldDeny ? ',"shadow":true,"would_deny":true' : ',"shadow":false';
  return `${head}${retryAfter(decision)}${tail}${shadow}${reason(decision)}`;
}

/** Absent when the check can never pass; at least 1 when denied, as 0 means allowed. */
function retryAfter(decision: Decision): string {
  if (decision.allowed) return ',"retry_after_ms":0';
  if (!Number.isFinite(decision.retryAfterUs)) return "";
  return `,"retry_after_ms":${Math.max(1, ceilToMs(decision.retryAfterUs))}`;
}

function reason(decision: Decision): string {
  return decision.reason === undefined ? "" : `,"reason":"${decision.reason}"`;
}
