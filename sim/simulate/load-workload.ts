/** Makes workloads of what a scenario file says about load. */
import type { Rate } from "../../src/config/rate.ts";
import type { Workload } from "../workload.ts";
import { bursts } from "../workloads/bursts.ts";
import { even } from "../workloads/even.ts";
import { hotWithBackground } from "../workloads/hot-with-background.ts";
import { loneHotPod } from "../workloads/lone-hot-pod.ts";
import { movingHotPod } from "../workloads/moving-hot-pod.ts";
import type { Offered } from "../workloads/offered.ts";
import { phaseAligned } from "../workloads/phase-aligned.ts";
import { rampUp } from "../workloads/ramp-up.ts";
import { retryStorm } from "../workloads/retry-storm.ts";
import { weightedCosts } from "../workloads/weighted-costs.ts";
import { zipfOverKeys } from "../workloads/zipf-over-keys.ts";
import { zipfOverPods } from "../workloads/zipf-over-pods.ts";
import type { ScenarioLoad } from "./scenario-schema.ts";

/** What a load is counted under when the file names no key. */
export const DEFAULT_KEY = "caller";

interface Place {
  /** Of the limit in the scenario. */
  readonly limit: number;
  /** Pods at the start. */
  readonly pods: number;
  readonly durationUs: number;
}

/** @param load - Checked by `readScenario`, and no trace. */
export function loadWorkload(load: ScenarioLoad, { limit, pods, durationUs }: Place): Workload {
  const key = load.key ?? DEFAULT_KEY;
  if (load.clients !== undefined) {
    return retryStorm({
      clients: load.clients,
      thinkUs: load.think ?? 1_000_000,
      backoff: load.backoff ?? "retry-after-jitter",
      ...(load.attempts === undefined ? {} : { attemptsMax: load.attempts }),
      limit,
      key,
    });
  }
  const perSecond = perSecondOf(load.rate);
  const { cost, keys, every = durationUs } = load;
  if (typeof cost === "object") {
    return weightedCosts({ perSecond, limit, key, costMin: cost.from, costMax: cost.to });
  }
  const offered: Offered = {
    perSecond,
    limit,
    key,
    ...(cost === undefined ? {} : { cost }),
    ...(load.spacing === undefined ? {} : { spacing: load.spacing }),
  };
  if (keys !== undefined) return zipfOverKeys({ ...offered, keys });
  const otherwise = perSecondOf(load.otherwise);
  switch (load.shape ?? "even") {
    case "even":
      return even(offered);
    case "hot-pod":
      return loneHotPod(offered);
    case "hot-with-background":
      return hotWithBackground({ ...offered, pods, background: otherwise });
    case "moving-hot-pod":
      return movingHotPod({ ...offered, pods, everyUs: every });
    case "zipf-over-pods":
      return zipfOverPods({ ...offered, pods });
    case "bursts":
      return bursts({
        ...offered,
        offPerSecond: otherwise,
        onUs: load.for ?? every,
        everyUs: every,
      });
    case "ramp":
      return rampUp({ ...offered, fromPerSecond: otherwise, overUs: every });
    case "aligned":
      return phaseAligned({ ...offered, everyUs: every });
  }
}

function perSecondOf(rate: Rate | undefined): number {
  return rate === undefined ? 0 : (rate.tokens / rate.spanUs) * 1e6;
}
