/**
 * The bound on over-admission of each mode, in closed form: what the documents state, what a run's
 * verdict is held against, and what `aliquot simulate` prints.
 */
import type { Limit } from "../src/core/limit.ts";
import { bandOf, chooseMode } from "../src/core/mode-choice.ts";
import type { DurationUs, Tokens } from "../src/core/units.ts";

/** What of the deployment enters the bound, beside the limit. */
export interface BoundTerms {
  /** Largest number of pods at any time. */
  readonly pods: number;
  /** Mean round trip to the store. */
  readonly rttUs: DurationUs;
  /** What pods believe N to be, as a factor of the truth. */
  readonly podsFactor: number;
  /** Part of the messages lost, each way. */
  readonly loss: number;
  readonly commandTimeoutUs: DurationUs;
}

/** As the pods answer, a token that the store spent may be admitted this much later. */
const LATE_ANSWER_S = 0.05;

/**
 * The bound in the limit's mode, tokens: none in leased mode; in exact mode none in the store's
 * order, and what refills while an answer is under way as the pods admit; `auto` is held to the
 * largest bound of the modes that fleets up to the largest one choose.
 */
export function boundOf(limit: Limit, terms: BoundTerms): Tokens {
  switch (limit.mode) {
    case "leased":
      return 0;
    case "exact":
      return limit.rate * LATE_ANSWER_S;
    case "hybrid":
      return epsBound(limit, terms);
    case "auto":
      return autoBound(limit, terms);
  }
}

function autoBound(limit: Limit, terms: BoundTerms): Tokens {
  let most = 0;
  for (let band = 1; band <= bandOf(terms.pods); band *= 2) {
    const fleet = { band, decisionTimeoutUs: 10_000, hasLargeCosts: false };
    const { mode, intervalUs } = chooseMode(limit, fleet);
    const pods = Math.min(terms.pods, band);
    most = Math.max(most, boundOf({ ...limit, mode, intervalUs }, { ...terms, pods }));
  }
  return most;
}

/** The part of the burst that idle pods may hold between them. */
const COLD = 0.1;

/**
 * Tokens by which admissions may exceed `b + r T` in any span T, however the load is spread:
 *
 *     eps = nu (cold b + max(N, r I) + r (I + RTT)),   nu = max(1, 1 / podsFactor)
 *
 * - `cold b`: stock that pods hold for keys nobody told them about yet; `cold b = min(0.1 b, 2 s
 *   r)`
 *   and in whole tokens per pod, so it is 0 when that is below one token each.
 * - `max(N, r I)`: flow tokens at hand, one per pod or one interval's refill of the fleet.
 * - `r (I + RTT)`: what is spent under old knowledge until every pod has heard of an empty bucket.
 * - nu: pods that believe in fewer pods than there are take larger parts, of all three terms.
 *
 * Lost messages lengthen an interval: `r (0.2 I + timeout)` is added from 5 % loss on. A single pod
 * has nobody to disagree with and is at most `max(1, r I)` over.
 *
 * This is the design figure (S = 1, shares that add up to one): the largest excess found by search
 * stayed below it; it is not a proof.
 */
export function epsBound(limit: Limit, terms: BoundTerms): Tokens {
  const intervalS = limit.intervalUs / 1e6;
  const rttS = terms.rttUs / 1e6;
  const perInterval = limit.rate * intervalS;
  if (terms.pods === 1) return Math.max(1, perInterval);
  const nu = Math.max(1, 1 / terms.podsFactor);
  const believed = Math.max(1, terms.pods * terms.podsFactor);
  const idleEach = Math.floor(Math.min(COLD * limit.burst, 2 * limit.rate) / believed);
  const cold = idleEach * terms.pods;
  const flow = Math.max(terms.pods, perInterval);
  const stale = limit.rate * (intervalS + rttS);
  const lossy =
    terms.loss >= 0.05 ? limit.rate * (0.2 * intervalS + terms.commandTimeoutUs / 1e6) : 0;
  return cold + nu * (flow + stale) + lossy;
}
