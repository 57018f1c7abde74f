/** Load that grows, or falls, in a straight line from the start and stays at its end. */
import type { DurationUs, TokensPerSecond } from "../../src/core/units.ts";
import { ramp, traffic } from "../traffic.ts";
import type { Workload } from "../workload.ts";
import { type Offered, streamOf } from "./offered.ts";

interface RampUp extends Offered {
  /** Where the line begins; it ends at `perSecond`. */
  readonly fromPerSecond: TokensPerSecond;
  readonly overUs: DurationUs;
}

export function rampUp(offered: RampUp): Workload {
  const { perSecond, fromPerSecond, overUs, cost = 1 } = offered;
  return traffic(`${fromPerSecond}/s to ${perSecond}/s over ${overUs / 1e6} s`, [
    {
      ...streamOf(offered),
      spacing: "poisson",
      perSecond: ramp(fromPerSecond / cost, perSecond / cost, overUs),
      perSecondMax: Math.max(fromPerSecond, perSecond) / cost,
    },
  ]);
}
