/**
 * How a limit is kept, and what that costs in accuracy.
 *
 * `auto` is resolved from the configuration and the band of the fleet's size alone, never from
 * measured traffic, so that all pods choose alike: a limit too small to split is decided in the
 * store (exact), one that fits its tolerance is shared (hybrid) at the interval that fits, one that
 * does not is handed out beforehand (leased).
 */
import { coldTokens } from "./hybrid.ts";
import type { Limit, Mode } from "./limit.ts";
import { mapOverrides } from "./shaped-limits.ts";
import { type DurationUs, type Tokens, US_PER_MS, US_PER_SECOND } from "./units.ts";

/** Below this many tokens of burst a pod, splitting refuses what one bucket would admit. */
const SPLIT_MIN = 3;
const HYBRID_INTERVAL_MIN_US = 20 * US_PER_MS;
const HYBRID_INTERVAL_MAX_US = US_PER_SECOND;
/** A slower interval than this is never needed to keep the cost of tiny limits down. */
const CHEAP_INTERVAL_MAX_US = 500 * US_PER_MS;
/** A lease covers so much time at least; shorter bursts cannot be leased. */
const LEASE_SPAN_US = 200 * US_PER_MS;
const LEASE_BURST_MIN_US = 50 * US_PER_MS;

/**
 * Round trip that the choice counts with. Measured ones differ from pod to pod and would make pods
 * choose differently; what matters is the order of magnitude of a store in the same zone.
 */
const NOMINAL_RTT_US = 5 * US_PER_MS;
/** Tokens of a late answer may be used for so long after they were asked for. */
const LATE_ANSWER_US = 50 * US_PER_MS;

const LARGE_COST_PART = 1 / 8;

export interface ModeTerms {
  /** Upper edge of the band of live pods: a power of two. */
  readonly band: number;
  readonly decisionTimeoutUs: DurationUs;
  /** A check whose cost is a large part of the burst was seen lately. */
  readonly hasLargeCosts: boolean;
}

export interface ModeChoice {
  readonly mode: Mode;
  readonly intervalUs: DurationUs;
  /** Why, as a sentence for `GET /v1/limits`. */
  readonly reason: string;
}

/** How a limit is kept now, for `GET /v1/limits`. */
export interface LimitStanding {
  readonly mode: Mode | "sole";
  readonly reason: string;
  readonly intervalUs: DurationUs;
  /** Over-admission bound while the store is there, whole tokens. */
  readonly boundTokens: Tokens;
}

/**
 * Over-admission that hybrid mode may show beyond `burst + rate * T` in any span T, in tokens: the
 * cold part of the burst, the flow tokens that pods hold, and what is admitted under old knowledge.
 *
 * @param pods - Live pods.
 */
export function hybridBound(
  limit: Limit,
  pods: number,
  intervalUs: DurationUs,
  rttUs: DurationUs,
): Tokens {
  const perInterval = (limit.rate * intervalUs) / US_PER_SECOND;
  const underOldKnowledge = (limit.rate * (intervalUs + rttUs)) / US_PER_SECOND;
  return coldTokens(limit) + Math.max(pods, perInterval) + underOldKnowledge;
}

/**
 * Over-admission bound of a limit in its present mode while the store is there, tokens. Leased mode
 * has none. Exact mode has none in the store's order; as the pods answer, an admission may come as
 * much later as a late answer may be used.
 */
export function overAdmissionBound(limit: Limit, choice: ModeChoice, pods: number): Tokens {
  if (choice.mode === "leased") return 0;
  if (choice.mode === "exact") return Math.ceil((limit.rate * LATE_ANSWER_US) / US_PER_SECOND);
  return Math.ceil(hybridBound(limit, pods, choice.intervalUs, NOMINAL_RTT_US));
}

/** Upper edge of the band of a fleet's size: the smallest power of two that is not below it. */
export function bandOf(pods: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(1, pods)));
}

/** The limit as it is kept now: mode and interval resolved, for the limit and its overrides. */
export function inForce(limit: Limit, terms: ModeTerms): { limit: Limit; choice: ModeChoice } {
  const choice = chooseMode(limit, terms);
  if (!limit.isAuto && limit.overrides.size === 0) return { limit, choice };
  const overrides = mapOverrides(limit.overrides, (override) => inForce(override, terms).limit);
  const { mode, intervalUs } = choice;
  return { limit: { ...limit, mode, intervalUs, overrides }, choice };
}

/** Resolves the mode of a limit. */
export function chooseMode(limit: Limit, terms: ModeTerms): ModeChoice {
  const { mode, intervalUs } = limit;
  if (mode !== "auto") return { mode, intervalUs, reason: `configured as ${mode}` };
  const { band } = terms;
  const perPod = limit.burst / band;
  if (perPod < SPLIT_MIN) {
    const reason = `burst ${limit.burst} is too small to split over up to ${band} pods`;
    return exactUnlessSlow(limit, terms, reason);
  }
  if (terms.hasLargeCosts) {
    return exactUnlessSlow(limit, terms, "costs above an eighth of the burst were seen lately");
  }
  const longest = longestFittingUs(limit, terms);
  const shortest = shortestCheapUs(limit, band);
  if (shortest <= longest) {
    const fits = Math.max(shortest, Math.min(limit.intervalUs, longest));
    const bound = Math.ceil(10 * hybridBound(limit, band, fits, NOMINAL_RTT_US)) / 10;
    const told = `bound of ${bound} ${bound === 1 ? "token" : "tokens"} with up to ${band} pods`;
    const reason = `${told} is within tolerance ${limit.tolerance} of the burst`;
    return { mode: "hybrid", intervalUs: fits, reason };
  }
  if (isLeasable(limit, band)) {
    const reason = `no reconcile interval keeps the bound within ${limit.tolerance} of the burst`;
    return { mode: "leased", intervalUs: limit.intervalUs, reason };
  }
  return exactUnlessSlow(limit, terms, "neither sharing nor leasing fits so small a burst");
}

function exactUnlessSlow(limit: Limit, terms: ModeTerms, reason: string): ModeChoice {
  const { intervalUs } = limit;
  const isSlow = NOMINAL_RTT_US > terms.decisionTimeoutUs / 2;
  if (isSlow && leaseTokens(limit, terms.band) >= 1) {
    return { mode: "leased", intervalUs, reason: `${reason}, and the store is too far for exact` };
  }
  return { mode: "exact", intervalUs, reason };
}

/** The longest interval whose bound is within the limit's tolerance. */
function longestFittingUs(limit: Limit, terms: ModeTerms): DurationUs {
  const { band } = terms;
  const room = limit.tolerance * limit.burst - coldTokens(limit);
  const rttTokens = (limit.rate * NOMINAL_RTT_US) / US_PER_SECOND;
  // max(n, r*I) + r*(I + RTT) <= room, solved for I on both branches of the maximum.
  const ifFlow = (room - rttTokens) / (2 * limit.rate);
  const ifPods = (room - rttTokens - band) / limit.rate;
  // A bucket that refills within a few intervals overflows between two reconciles.
  const seconds = Math.min(ifFlow, ifPods, limit.burst / (4 * limit.rate));
  return Math.min(HYBRID_INTERVAL_MAX_US, Math.floor(seconds * US_PER_SECOND));
}

/** The shortest interval that does not cost more store calls than deciding there. */
function shortestCheapUs(limit: Limit, band: number): DurationUs {
  const cheap = Math.ceil((band / (3 * limit.rate)) * US_PER_SECOND);
  return Math.max(HYBRID_INTERVAL_MIN_US, Math.min(cheap, CHEAP_INTERVAL_MAX_US));
}

function isLeasable(limit: Limit, band: number): boolean {
  const burstUs = (limit.burst / limit.rate) * US_PER_SECOND;
  return burstUs >= LEASE_BURST_MIN_US && leaseTokens(limit, band) >= 1;
}

/** Tokens of one pod's lease at the equal share. */
function leaseTokens(limit: Limit, band: number): number {
  return (limit.rate * LEASE_SPAN_US) / US_PER_SECOND / band;
}

/**
 * Whether a cost is such a part of the burst that splitting the limit would refuse it too often.
 */
export function isLargeCost(limit: Limit, cost: Tokens): boolean {
  return cost > 1 && cost > limit.burst * LARGE_COST_PART && cost <= limit.burst;
}
