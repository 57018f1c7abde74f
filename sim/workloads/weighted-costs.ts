/**
 * Costs that differ widely, as tokens of a language model do: a bounded Pareto distribution, whose
 * few large requests make up much of the load.
 */
import type { Tokens } from "../../src/core/units.ts";
import { traffic } from "../traffic.ts";
import type { Workload } from "../workload.ts";
import { checksOf, type Offered, streamOf } from "./offered.ts";

interface WeightedCosts extends Omit<Offered, "cost"> {
  readonly costMin: Tokens;
  readonly costMax: Tokens;
  /** The smaller, the heavier the tail; not 1. */
  readonly alpha?: number;
}

export function weightedCosts(offered: WeightedCosts): Workload {
  const { perSecond, costMin, costMax, alpha = 1.2 } = offered;
  const pareto = boundedPareto(costMin, costMax, alpha);
  return traffic(`${perSecond}/s in costs of ${costMin} to ${costMax}, heavy tail`, [
    {
      ...streamOf(offered),
      perSecond: perSecond / pareto.mean,
      checks: (random) => checksOf({ ...offered, cost: Math.round(pareto.at(random.draw())) }),
    },
  ]);
}

/** Mean and quantiles of a Pareto distribution cut off at both ends. */
export function boundedPareto(
  least: number,
  most: number,
  alpha: number,
): { readonly mean: number; at(part: number): number } {
  if (!(least > 0 && most > least && alpha > 0 && alpha !== 1)) {
    throw new RangeError(`no Pareto distribution from ${least} to ${most} with alpha ${alpha}`);
  }
  const kept = 1 - (least / most) ** alpha;
  const mean =
    ((least ** alpha / kept) * alpha * (least ** (1 - alpha) - most ** (1 - alpha))) / (alpha - 1);
  return { mean, at: (part) => least / (1 - part * kept) ** (1 / alpha) };
}
