/** The places that a request asks for: which rule each descriptor meets, and what it asks of it. */
import type { Check } from "../core/decision.ts";
import { type Limit, limitForKey } from "../core/limit.ts";
import type { Tokens } from "../core/units.ts";
import type { DescriptorMatch, DescriptorMatcher, DescriptorRule } from "../ports/descriptors.ts";
import {
  type RateLimitDescriptor,
  type RateLimitRequest,
  unitSeconds,
} from "./rate-limit-messages.ts";
import type { Place } from "./rate-limit-status.ts";
import { RefusedRequest } from "./refused-request.ts";

/** A place that is decided; one that gives back is not. */
export interface CountedPlace extends Place {
  readonly check: Check;
}

export function isCounted(place: Place): place is CountedPlace {
  return place.check !== undefined && place.check.cost >= 0;
}

export function placeOf(
  request: RateLimitRequest,
  descriptor: RateLimitDescriptor,
  matcher: DescriptorMatcher,
): Place | RefusedRequest {
  const { entries, limit } = descriptor;
  if (limit === undefined) {
    const match = matcher.match(request.domain, entries);
    return match === undefined
      ? ruledPlace(descriptor, undefined, undefined)
      : matchedPlace(request, descriptor, match);
  }
  const seconds = unitSeconds(limit.unit);
  if (seconds === undefined) {
    return new RefusedRequest(`limit.unit ${limit.unit} is not a unit of time`);
  }
  const tokens = limit.requestsPerUnit;
  const match = matcher.matchOverride(request.domain, entries, tokens, seconds);
  if (match?.rule.limit === undefined) return ruledPlace(descriptor, undefined, undefined);
  if (tokens === 0) return ruledPlace(descriptor, blockingRule(match.rule, seconds), undefined);
  if (limitForKey(match.rule.limit, match.key) === match.rule.limit) {
    return new RefusedRequest(`limit: ${tokens} per ${seconds} s cannot be counted exactly`);
  }
  return matchedPlace(request, descriptor, match);
}

function matchedPlace(
  request: RateLimitRequest,
  descriptor: RateLimitDescriptor,
  { rule, key }: DescriptorMatch,
): Place {
  const { limit } = rule;
  if (limit === undefined) return ruledPlace(descriptor, rule, undefined);
  const tokens = descriptor.hitsAddend ?? Math.max(1, request.hitsAddend);
  const cost = descriptor.isNegativeHits ? givenBack(limit, key, tokens) : tokens;
  return ruledPlace(descriptor, rule, { limit, key, cost });
}

/** No bucket can be owed more than from its deepest debt to full. */
function givenBack(limit: Limit, key: string, tokens: Tokens): Tokens {
  const { burst, maxDebt } = limitForKey(limit, key);
  return tokens === 0 ? 0 : -Math.min(tokens, burst + maxDebt);
}

/** All places have their fields in one order: they are looked at by the same few lines. */
function ruledPlace(
  { entries }: RateLimitDescriptor,
  rule: DescriptorRule | undefined,
  check: Check | undefined,
): Place {
  return { entries, rule, isReplaced: false, check, decision: undefined };
}

function blockingRule(rule: DescriptorRule, seconds: number): DescriptorRule {
  return { ...rule, kind: "blocked", limit: undefined, unitSeconds: seconds };
}
