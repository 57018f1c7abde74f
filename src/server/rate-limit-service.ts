/**
 * Envoy's rate limit service on top of the decider, without a transport: gRPC and JSON both ask it.
 *
 * All descriptors of a request are one check over several limits: one denial and nothing is spent.
 * Two kinds of rules need more than that. A blocking rule has no bucket; the other limits are then
 * only asked where they stand. And rules in `quota_mode` deny only together; when some of them are
 * exhausted and the call still passes, it is decided once more without those.
 */
import type { Check, Decision } from "../core/decision.ts";
import type { Decider } from "../ports/decider.ts";
import type { DescriptorMatcher } from "../ports/descriptors.ts";
import { speakingDecision } from "./decision-json.ts";
import { chargeDenied, isCertainDenial, isInForce } from "./denied-charges.ts";
import type { RateHeaders } from "./headers.ts";
import {
  CODE_OK,
  CODE_OVER_LIMIT,
  type HeaderValue,
  type RateLimitRequest,
  type RateLimitResponse,
} from "./rate-limit-messages.ts";
import { type CountedPlace, isCounted, placeOf } from "./rate-limit-places.ts";
import { type Place, statusOf } from "./rate-limit-status.ts";
import { dropReplaced, isDenied, isDenying, isPassing, isUndecided } from "./rate-limit-verdict.ts";
import { RefusedRequest } from "./refused-request.ts";
import { ShownValues } from "./shown-values.ts";

/** Most descriptors of one request: the engine decides so many limits together. */
export const DESCRIPTORS_MAX = 16;

export interface RateLimitServiceParts {
  readonly decider: Decider;
  /** The rules in force; asked once per request. */
  readonly matcher: () => DescriptorMatcher;
  readonly rateHeaders: RateHeaders;
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
    const checks = checksOf(places);
    if (checks.length === 0) return this.#respond(places);
    const decided = this.#parts.decider.decide(checks);
    if (!(decided instanceof Promise)) {
      note(places, decided);
      return this.#conclude(places, false);
    }
    return decided.then((decisions) => {
      note(places, decisions);
      return this.#conclude(places, true);
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
    for (const place of places) this.#giveBack(place);
    return places;
  }

  /** What a caller gives back is taken whatever else the call comes to, as it was not used. */
  #giveBack(place: Place): void {
    const { check } = place;
    if (check !== undefined && check.cost < 0) place.decision = this.#parts.decider.report(check);
  }

  /** @param hasWaited - The time for this decision is used up. */
  #conclude(
    places: readonly Place[],
    hasWaited: boolean,
  ): RateLimitAnswer | Promise<RateLimitAnswer> {
    if (!places.some(isDenying)) return this.#respond(places);
    const counted = places.filter(isCounted);
    if (isDenied(places)) {
      const denying = places.filter(isDenying);
      if (denying.every(isUndecided)) return storeAway(denying);
      if (denying.some(isCertain)) {
        chargeDenied(
          this.#parts.decider,
          counted.map(({ check }) => check),
        );
      }
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
    const decisions: Decision[] = [];
    for (const { decision } of places) if (decision !== undefined) decisions.push(decision);
    // A rule that would deny but is spared does not speak for a call that passes.
    const isMixed = isAllowed && !decisions.every(isAdmitted);
    const voices = isMixed ? decisions.filter(isAdmitted) : decisions;
    if (voices.length === 0) return NO_HEADERS;
    const flat: string[] = [];
    this.#parts.rateHeaders(flat, speakingDecision(voices), decisions);
    const headers: HeaderValue[] = [];
    for (let i = 0; i < flat.length; i += 2) {
      headers.push({ key: lowerCase(flat[i] as string), value: flat[i + 1] as string });
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

/** Blocked before anything is decided: the limits are only asked where they stand. */
function checksOf(places: readonly Place[]): Check[] {
  const isBlocked = isDenied(places);
  const checks: Check[] = [];
  for (const place of places) {
    if (isCounted(place)) checks.push(isBlocked ? { ...place.check, cost: 0 } : place.check);
  }
  return checks;
}

/** @param decisions - One per counted place, in order. */
function note(places: readonly Place[], decisions: readonly Decision[]): void {
  let next = 0;
  for (const place of places) {
    if (!isCounted(place)) continue;
    place.decision = decisions[next];
    next += 1;
  }
}

const NO_HEADERS: readonly HeaderValue[] = [];

/** gRPC's names of headers, by those that `RateHeaders` writes; there are a dozen. */
const lowerNames = new Map<string, string>();

function lowerCase(name: string): string {
  let lower = lowerNames.get(name);
  if (lower === undefined) {
    lower = name.toLowerCase();
    lowerNames.set(name, lower);
  }
  return lower;
}

/** Rules that block need no store to know. */
function isCertain({ decision }: Place): boolean {
  return decision === undefined || isCertainDenial(decision);
}

function isAdmitted({ allowed }: Decision): boolean {
  return allowed;
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
