/**
 * What happens in an outage: the same scenario once more, with the store out of reach for a part of
 * it, and the figures of just that part.
 */
import type { DurationUs, InstantUs } from "../../src/core/units.ts";
import type { Fault } from "../fault-plan.ts";
import { type LimitResult, type RunResult, SERIES_STEP_US } from "../run-result.ts";

export interface Outage {
  readonly fromUs: InstantUs;
  readonly toUs: InstantUs;
}

/** Pods need this long to go over to their fallback; the part that counts begins after it. */
const ENTRY_US: DurationUs = 1_500_000;

/** The longest time that the plan keeps the store away for all pods; undefined for never. */
export function plannedOutage(plan: readonly Fault[], durationUs: DurationUs): Outage | undefined {
  let longest: Outage | undefined;
  for (const fault of plan) {
    if (fault.kind !== "store-down") continue;
    const outage = { fromUs: fault.atUs, toUs: Math.min(durationUs, fault.atUs + fault.forUs) };
    const isLonger = longest === undefined || lengthOf(outage) > lengthOf(longest);
    if (isLonger && lengthOf(outage) > 2 * ENTRY_US) longest = outage;
  }
  return longest;
}

/**
 * An outage in the middle of a run, for plans that have none; undefined when the run is too short.
 */
export function addedOutage(durationUs: DurationUs): Outage | undefined {
  const outage = { fromUs: Math.round(0.4 * durationUs), toUs: Math.round(0.75 * durationUs) };
  return lengthOf(outage) > 2 * ENTRY_US ? outage : undefined;
}

export function outageFault({ fromUs, toUs }: Outage): Fault {
  return { kind: "store-down", atUs: fromUs, forUs: toUs - fromUs, how: "hang" };
}

export interface OutageFigures {
  /** Tokens per second admitted and admitted by ideal buckets, once the fallback is in force. */
  readonly admittedPerSecond: number;
  readonly idealPerSecond: number;
}

export function outageFigures(limit: LimitResult, { fromUs, toUs }: Outage): OutageFigures {
  const from = Math.ceil((fromUs + ENTRY_US) / SERIES_STEP_US);
  const to = Math.floor(toUs / SERIES_STEP_US);
  const seconds = ((to - from) * SERIES_STEP_US) / 1e6;
  const rate = (series: readonly number[]): number =>
    series.slice(from, to).reduce((sum, tokens) => sum + tokens, 0) / seconds;
  return {
    admittedPerSecond: rate(limit.admittedSeries),
    idealPerSecond: rate(limit.idealSeries),
  };
}

/** Pods that served when the outage began. */
export function podsAt(result: RunResult, atUs: InstantUs): number {
  return result.fleet.podsSeries[Math.floor(atUs / SERIES_STEP_US)] ?? result.podsAtStart;
}

function lengthOf({ fromUs, toUs }: Outage): DurationUs {
  return toUs - fromUs;
}
