/** On and off: a burst at the beginning of every period, on all pods or on one. */
import type { DurationUs, TokensPerSecond } from "../../src/core/units.ts";
import { onOff, traffic } from "../traffic.ts";
import type { Workload } from "../workload.ts";
import { type Offered, streamOf } from "./offered.ts";

interface Bursts extends Offered {
  /** Between bursts; nothing unless said. */
  readonly offPerSecond?: TokensPerSecond;
  readonly onUs: DurationUs;
  readonly everyUs: DurationUs;
  /** All load at this pod; at all pods unless said. */
  readonly pod?: number;
}

export function bursts(offered: Bursts): Workload {
  const { perSecond, offPerSecond = 0, onUs, everyUs, pod, cost = 1 } = offered;
  const where = pod === undefined ? "all pods" : `pod ${pod}`;
  const rhythm = `${onUs / 1e6} s of ${everyUs / 1e6} s`;
  return traffic(`${perSecond}/s at ${where} for ${rhythm}, else ${offPerSecond}/s`, [
    {
      ...streamOf(offered),
      spacing: "poisson",
      perSecond: onOff(perSecond / cost, offPerSecond / cost, onUs, everyUs),
      perSecondMax: Math.max(perSecond, offPerSecond) / cost,
      ...(pod === undefined ? {} : { pod: () => pod }),
    },
  ]);
}
