/** One descriptor on its way through the rate limit service, and its status in the answer. */
import type { Check, Decision } from "../core/decision.ts";
import type { Limit } from "../core/limit.ts";
import { ceilToSeconds } from "../core/units.ts";
import type { DescriptorEntry, DescriptorRule } from "../ports/descriptors.ts";
import { wholeSecondsToFill } from "./limit-text.ts";
import {
  CODE_OK,
  CODE_OVER_LIMIT,
  type CurrentLimit,
  type DescriptorStatus,
  UINT32_MAX,
  unitOfSeconds,
} from "./rate-limit-messages.ts";

export interface Place {
  readonly entries: readonly DescriptorEntry[];
  readonly rule: DescriptorRule | undefined;
  /** Another rule of the same call stands in for this one. */
  isReplaced: boolean;
  /** Set exactly for a rule with a limit that counts in this call. */
  check: Check | undefined;
  decision: Decision | undefined;
}

/** Envoy makes no headers of a status without `current_limit`. */
const UNTOUCHED: DescriptorStatus = {
  code: CODE_OK,
  currentLimit: undefined,
  limitRemaining: 0,
  secondsUntilReset: undefined,
};

const UNLIMITED: DescriptorStatus = { ...UNTOUCHED, limitRemaining: UINT32_MAX };

export function statusOf({ rule, isReplaced, decision }: Place): DescriptorStatus {
  if (rule === undefined || isReplaced) return UNTOUCHED;
  if (rule.kind === "unlimited") return UNLIMITED;
  if (rule.kind === "blocked") return blockedStatus(rule);
  return decision === undefined ? UNTOUCHED : limitedStatus(rule, decision);
}

function blockedStatus(rule: DescriptorRule): DescriptorStatus {
  const unit = unitOfSeconds(rule.unitSeconds);
  return {
    code: rule.shadow ? CODE_OK : CODE_OVER_LIMIT,
    currentLimit: { requestsPerUnit: 0, unit, name: rule.label ?? "" },
    limitRemaining: 0,
    secondsUntilReset: undefined,
  };
}

/** Whole seconds, rounded up: Envoy cuts fractions off, and a client must not come too early. */
function limitedStatus(rule: DescriptorRule, decision: Decision): DescriptorStatus {
  const { allowed, limit, remaining, retryAfterUs, resetAfterUs } = decision;
  const wait = allowed ? resetAfterUs : retryAfterUs;
  return {
    code: allowed ? CODE_OK : CODE_OVER_LIMIT,
    currentLimit: currentLimitOf(limit, rule.label ?? ""),
    limitRemaining: Math.min(remaining, UINT32_MAX),
    secondsUntilReset: Number.isFinite(wait) ? ceilToSeconds(wait) : undefined,
  };
}

/** A limit has one rule, so its name is always the same one. */
const currentLimits = new WeakMap<Limit, CurrentLimit>();

/**
 * Burst and the unit in which it refills. With another burst than the rule's `requests_per_unit`
 * there may be no such unit; it stays unknown then, since a rounded one would state another rate.
 */
function currentLimitOf(limit: Limit, name: string): CurrentLimit {
  const known = currentLimits.get(limit);
  if (known !== undefined) return known;
  const unit = unitOfSeconds(wholeSecondsToFill(limit));
  const current = { requestsPerUnit: Math.min(limit.burst, UINT32_MAX), unit, name };
  currentLimits.set(limit, current);
  return current;
}
