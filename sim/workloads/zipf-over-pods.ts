/** Pods differ in load by Zipf's law: pod 0 gets most. */
import { traffic, zipf } from "../traffic.ts";
import type { Workload } from "../workload.ts";
import { type Offered, streamOf } from "./offered.ts";

interface ZipfOverPods extends Offered {
  readonly pods: number;
  readonly exponent?: number;
}

export function zipfOverPods(offered: ZipfOverPods): Workload {
  const { pods, perSecond, exponent = 1 } = offered;
  return traffic(`${perSecond}/s, Zipf ${exponent} over pods`, [
    { ...streamOf(offered), pod: zipf(pods, exponent) },
  ]);
}
