/**
 * Envoy's rate limit service on top of the decider, without a transport: gRPC and JSON both ask it.
 *
 * All descriptors of a request are one check over several limits: one denial and nothing is spent.
 * Two kinds of rules need more than that. A blocking rule has no bucket; the other limits are then
 * only asked where they stand. And rules in `quota_mode` deny only together; when some of them are
 * exhausted and the call still passes, it is decided once more without those.
 */
import type { Check, Decision } from "../core/decision.ts";
import { limitForKey } from "../core/limit.ts";
import type { Decider } from "../ports/decider.ts";
import type { DescriptorMatch, DescriptorMatcher, DescriptorRule } from "../ports/descriptors.ts";
import { speakingDecision } from "./decision-json.ts";
import { chargeDenied, isInForce } from "./denied-charges.ts";
import type { RateHeaders } from "./headers.ts";
import type {
  HeaderValue,
  RateLimitDescriptor,
  RateLimitRequest,
  RateLimitResponse,
} from "./rate-limit-messages.ts";
import { CODE_OK, CODE_OVER_LIMIT, unitSeconds } from "./rate-limit-messages.ts";
import { type Place, statusOf } from "./rate-limit-status.ts";
import { dropReplaced, isDenied, isDenying, isPassing, isUndecided } from "./rate-limit-verdict.ts";
import { ShownValues } from "./shown-values.ts";

/** Most descriptors of one request: the engine decides so many limits together. */
export const DESCRIPTORS_MAX = 16;

export interface RateLimitServiceParts {
  readonly decider: Decider;
  /** The rules in force; asked once per request. */
  readonly matcher: () => DescriptorMatcher;
  readonly rateHeaders: RateHeaders;
}

/** Why a request got no decision: its own fault, or a store that must be asked and cannot be. */
export class RefusedRequest {
  readonly message: string;
  /** The limit that must ask its store and cannot; undefined when the request is at fault. */
  readonly closedLimit: string | undefined;

  constructor(message: string, closedLimit?: string) {
    this.message = message;
    this.closedLimit = closedLimit;
  }
}

export type RateLimitAnswer = RateLimitResponse | RefusedRequest;

export class RateLimitService {
  readonly #parts: RateLimitServiceParts;
  readonly #shown = new ShownValues();
  #unmatched = 0;

  constructor(parts: RateLimitServiceParts) {
    this.#parts = parts;
  }

  /** Descriptors so far that no rule was for, also those of unknown domains. */
  get unmatched(): number {
    return this.#unmatched;
  }

  get shown(): ShownValues {
    return this.#shown;
  }

  /** Answers at once when the pod decides by itself; never throws for a request. */
  shouldRateLimit(request: RateLimitRequest): RateLimitAnswer | Promise<RateLimitAnswer> {
    const places = this.#places(request);
    if (places instanceof RefusedRequest) return places;
    const counted = places.filter(isCounted);
    if (counted.length === 0) return this.#respond(places);
    // Blocked before anything is decided: the limits are only asked where they stand.
    const isBlocked = isDenied(places);
    const checks = counted.map(({ check }) => (isBlocked ? { ...check, cost: 0 } : check));
    const decided = this.#parts.decider.decide(checks);
    if (!(decided instanceof Promise)) {
      note(counted, decided);
      return this.#conclude(places, counted, false);
    }
    return decided.then((decisions) => {
      note(counted, decisions);
      return this.#conclude(places, counted, true);
    });
  }

  #places(request: RateLimitRequest): Place[] | RefusedRequest {
    if (request.domain === "") return invalid("domain must not be empty");
    const count = request.descriptors.length;
    if (count === 0) return invalid("descriptors must not be empty");
    if (count > DESCRIPTORS_MAX) {
      return invalid(`at most ${DESCRIPTORS_MAX} descriptors are decided together, got ${count}`);
    }
    const matcher = this.#parts.matcher();
    const places: Place[] = [];
    for (const descriptor of request.descriptors) {
      const place = placeOf(request, descriptor, matcher);
      if (place instanceof RefusedRequest) return place;
      places.push(place);
    }
    for (const { rule } of places) if (rule === undefined) this.#unmatched += 1;
    dropReplaced(places);
    return places;
  }

  /** @param hasWaited - The time for this decision is used up. */
  #conclude(
    places: readonly Place[],
    counted: readonly CountedPlace[],
    hasWaited: boolean,
  ): RateLimitAnswer | Promise<RateLimitAnswer> {
    const denying = places.filter(isDenying);
    if (denying.length === 0) return this.#respond(places);
    if (isDenied(places)) {
      if (denying.every(isUndecided)) return storeAway(denying);
      chargeDenied(
        this.#parts.decider,
        counted.map(({ check }) => check),
      );
      return this.#respond(places);
    }
    return this.#spendSpared(places, counted.filter(isPassing), hasWaited);
  }

  /** The call passes without its exhausted rules; nothing is spent yet. */
  #spendSpared(
    places: readonly Place[],
    passing: readonly CountedPlace[],
    hasWaited: boolean,
  ): RateLimitAnswer | Promise<RateLimitAnswer> {
    const { decider } = this.#parts;
    if (passing.length === 0) return this.#respond(places);
    if (hasWaited) {
      // The buckets covered it a moment ago; what came between is a debt that refill pays back.
      for (const { check } of passing) {
        if (check.cost > 0 && isInForce(decider, check)) decider.report(check);
      }
      return this.#respond(places);
    }
    // The first decisions are told as well, and the second ones would be written over them.
    for (const place of places) place.decision = place.decision && { ...place.decision };
    const decided = decider.decide(passing.map(({ check }) => check));
    const conclude = (decisions: readonly Decision[]): RateLimitAnswer => {
      note(passing, decisions);
      return this.#respond(places);
    };
    return decided instanceof Promise ? decided.then(conclude) : conclude(decided);
  }

  #respond(places: readonly Place[]): RateLimitResponse {
    const overallCode = isDenied(places) ? CODE_OVER_LIMIT : CODE_OK;
    for (const place of places) this.#show(place, overallCode === CODE_OK);
    return {
      overallCode,
      statuses: places.map(statusOf),
      responseHeadersToAdd: this.#headers(places, overallCode === CODE_OK),
      dynamicMetadata: metadataOf(places),
    };
  }

  #headers(places: readonly Place[], isAllowed: boolean): readonly HeaderValue[] {
    const decisions = places.flatMap(({ decision }) => decision ?? []);
    // A rule that would deny but is spared does not speak for a call that passes.
    const voices = isAllowed ? decisions.filter(({ allowed }) => allowed) : decisions;
    if (voices.length === 0) return [];
    const flat: string[] = [];
    this.#parts.rateHeaders(flat, speakingDecision(voices), decisions);
    const headers: HeaderValue[] = [];
    for (let i = 0; i < flat.length; i += 2) {
      headers.push({ key: (flat[i] as string).toLowerCase(), value: flat[i + 1] as string });
    }
    return headers;
  }

  #show(place: Place, isAllowed: boolean): void {
    const { rule, entries, decision } = place;
    if (rule === undefined || rule.shownEntries.length === 0 || place.isReplaced) return;
    const isShadowed = decision?.wouldDeny === true || (rule.kind === "blocked" && rule.shadow);
    // What passed in a call that was denied was neither admitted nor denied.
    if (isDenying(place)) this.#shown.count(rule, entries, "denied");
    else if (isAllowed) this.#shown.count(rule, entries, isShadowed ? "shadow_denied" : "allowed");
  }
}

interface CountedPlace extends Place {
  readonly check: Check;
}

function placeOf(
  request: RateLimitRequest,
  descriptor: RateLimitDescriptor,
  matcher: DescriptorMatcher,
): Place | RefusedRequest {
  const { entries, limit } = descriptor;
  const place: Place = {
    entries,
    rule: undefined,
    isReplaced: false,
    check: undefined,
    decision: undefined,
  };
  const cost = descriptor.hitsAddend ?? Math.max(1, request.hitsAddend);
  if (limit === undefined) {
    const match = matcher.match(request.domain, entries);
    return match === undefined ? place : matched(place, match, cost);
  }
  const seconds = unitSeconds(limit.unit);
  if (seconds === undefined) return invalid(`limit.unit ${limit.unit} is not a unit of time`);
  const tokens = limit.requestsPerUnit;
  const match = matcher.matchOverride(request.domain, entries, tokens, seconds);
  if (match?.rule.limit === undefined) return place;
  if (tokens === 0) return { ...place, rule: blockingRule(match.rule, seconds) };
  if (limitForKey(match.rule.limit, match.key) === match.rule.limit) {
    return invalid(`limit: ${tokens} per ${seconds} s cannot be counted exactly`);
  }
  return matched(place, match, cost);
}

function matched(place: Place, { rule, key }: DescriptorMatch, cost: number): Place {
  const { limit } = rule;
  return { ...place, rule, check: limit === undefined ? undefined : { limit, key, cost } };
}

function blockingRule(rule: DescriptorRule, seconds: number): DescriptorRule {
  return { ...rule, kind: "blocked", limit: undefined, unitSeconds: seconds };
}

function note(counted: readonly CountedPlace[], decisions: readonly Decision[]): void {
  for (const [index, place] of counted.entries()) place.decision = decisions[index];
}

function isCounted(place: Place): place is CountedPlace {
  return place.check !== undefined;
}

function metadataOf(places: readonly Place[]): Readonly<Record<string, unknown>> | undefined {
  let all: Record<string, unknown> | undefined;
  for (const place of places) {
    const metadata = place.isReplaced ? undefined : place.rule?.metadata;
    if (metadata === undefined || isDenying(place)) continue;
    all = { ...all, ...metadata };
  }
  return all;
}

function invalid(message: string): RefusedRequest {
  return new RefusedRequest(message);
}

function storeAway(denying: readonly Place[]): RefusedRequest {
  const name = denying[0]?.decision?.limit.name ?? "";
  return new RefusedRequest(
    `the store cannot be reached and the limit ${name} is configured to refuse until it can`,
    name,
  );
}
