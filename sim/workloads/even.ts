/** Every pod gets the same part: the balancer sends each request to a random serving pod. */
import { traffic } from "../traffic.ts";
import type { Workload } from "../workload.ts";
import { type Offered, streamOf } from "./offered.ts";

export function even(offered: Offered): Workload {
  const spaced = offered.spacing === "even" ? "evenly spaced" : "Poisson";
  return traffic(`${offered.perSecond}/s over all pods, ${spaced}`, [streamOf(offered)]);
}
