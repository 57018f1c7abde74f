/**
 * The bounds of a scenario's limits, by the mode in which the engine kept each: `auto` follows the
 * size of the fleet and the costs that it sees.
 */
import type { Limit } from "../../src/core/limit.ts";
import type { LimitStanding } from "../../src/core/mode-choice.ts";
import type { DurationUs } from "../../src/core/units.ts";
import { epsBound } from "../bound.ts";
import type { RunResult } from "../run-result.ts";

/** What of the deployment enters the bound of hybrid mode. */
export interface BoundSetting {
  readonly roundTripUs: DurationUs;
  readonly commandTimeoutUs: DurationUs;
}

/** The same result with the bounds of the modes that the limits were kept in. */
export function withBounds(
  result: RunResult,
  limits: readonly Limit[],
  standings: readonly LimitStanding[],
  { roundTripUs: rttUs, commandTimeoutUs }: BoundSetting,
): RunResult {
  const terms = { pods: largestFleet(result), rttUs, podsFactor: 1, loss: 0, commandTimeoutUs };
  const measured = result.limits.map((limit, i) => {
    const [asked, standing] = [limits[i], standings[i]];
    if (asked === undefined || standing === undefined) return limit;
    const { mode, intervalUs, boundTokens } = standing;
    const bound = mode === "hybrid" ? epsBound({ ...asked, intervalUs }, terms) : boundTokens;
    return { ...limit, bound };
  });
  return { ...result, limits: measured };
}

export function largestFleet({ fleet }: RunResult): number {
  return Math.max(1, ...fleet.podsSeries);
}
