/**
 * How each limit of a scenario is kept, and the bound that follows: `auto` is resolved by the
 * engine's own rule, for the largest fleet of the run.
 */
import type { Limit } from "../../src/core/limit.ts";
import {
  bandOf,
  chooseMode,
  isLargeCost,
  type ModeChoice,
  overAdmissionBound,
} from "../../src/core/mode-choice.ts";
import type { DurationUs, Tokens } from "../../src/core/units.ts";
import { epsBound } from "../bound.ts";
import type { RunResult } from "../run-result.ts";

export interface ModeTerms {
  readonly decisionTimeoutUs: DurationUs;
  readonly commandTimeoutUs: DurationUs;
  readonly roundTripUs: DurationUs;
  /** The largest cost that the load asks of each limit, in the order of the limits. */
  readonly costs: readonly Tokens[];
}

/** The choice for each limit, by the largest number of pods that served. */
export function modesOf(
  limits: readonly Limit[],
  result: RunResult,
  terms: ModeTerms,
): ModeChoice[] {
  const band = bandOf(largestFleet(result));
  const { decisionTimeoutUs } = terms;
  return limits.map((limit, i) => {
    const hasLargeCosts = isLargeCost(limit, terms.costs[i] ?? 1);
    return chooseMode(limit, { band, decisionTimeoutUs, hasLargeCosts });
  });
}

/** The same result with the bounds of the modes that the limits are kept in. */
export function withBounds(
  result: RunResult,
  limits: readonly Limit[],
  modes: readonly ModeChoice[],
  terms: ModeTerms,
): RunResult {
  const pods = largestFleet(result);
  const bounds = limits.map((limit, i) => {
    const choice = modes[i];
    if (choice === undefined || choice.mode === "hybrid") {
      const intervalUs = choice?.intervalUs ?? limit.intervalUs;
      const { roundTripUs: rttUs, commandTimeoutUs } = terms;
      return epsBound(
        { ...limit, intervalUs },
        { pods, rttUs, podsFactor: 1, loss: 0, commandTimeoutUs },
      );
    }
    return overAdmissionBound(limit, choice, pods);
  });
  return {
    ...result,
    limits: result.limits.map((limit, i) => ({ ...limit, bound: bounds[i] ?? limit.bound })),
  };
}

export function largestFleet({ fleet }: RunResult): number {
  return Math.max(1, ...fleet.podsSeries);
}
