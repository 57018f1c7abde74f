/** All load on one pod, and every so often on the next: what demand estimates follow worst. */
import type { DurationUs } from "../../src/core/units.ts";
import { traffic } from "../traffic.ts";
import type { Workload } from "../workload.ts";
import { type Offered, streamOf } from "./offered.ts";

interface MovingHotPod extends Offered {
  readonly pods: number;
  readonly everyUs: DurationUs;
}

export function movingHotPod(offered: MovingHotPod): Workload {
  const { pods, perSecond, everyUs } = offered;
  return traffic(`${perSecond}/s at one pod, at the next every ${everyUs / 1e6} s`, [
    { ...streamOf(offered), pod: (_, atUs) => Math.floor(atUs / everyUs) % pods },
  ]);
}
