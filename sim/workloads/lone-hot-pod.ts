/** All load on one pod: sticky sessions, one busy tenant, a balancer that is none. */
import { traffic } from "../traffic.ts";
import type { Workload } from "../workload.ts";
import { type Offered, streamOf } from "./offered.ts";

export function loneHotPod(offered: Offered & { readonly pod?: number }): Workload {
  const pod = offered.pod ?? 0;
  return traffic(`${offered.perSecond}/s at pod ${pod} alone`, [
    { ...streamOf(offered), pod: () => pod },
  ]);
}
