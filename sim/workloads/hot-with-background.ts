/** One hot pod, and a trickle at every other pod that must not be starved by it. */
import type { TokensPerSecond } from "../../src/core/units.ts";
import { traffic } from "../traffic.ts";
import type { Workload } from "../workload.ts";
import { type Offered, streamOf } from "./offered.ts";

interface HotWithBackground extends Offered {
  readonly pods: number;
  /** At each pod but pod 0. */
  readonly background: TokensPerSecond;
}

/** Client 1 is the hot one, client 2 are all others. */
export function hotWithBackground(offered: HotWithBackground): Workload {
  const { pods, perSecond, background } = offered;
  const hot = { ...streamOf(offered), pod: () => 0, client: 1 };
  const others = streamOf({ ...offered, perSecond: background * (pods - 1) });
  const rest = {
    ...others,
    pod: (random: { below(bound: number): number }) => 1 + random.below(pods - 1),
    client: 2,
  };
  return traffic(
    `${perSecond}/s at pod 0, ${background}/s at each other pod`,
    pods > 1 && background > 0 ? [hot, rest] : [hot],
  );
}
