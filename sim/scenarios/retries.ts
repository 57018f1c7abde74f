/** Clients that come back after a denial: does an overload end, or feed itself? */
import type { Scenario } from "../scenario.ts";
import { longRun, utilisationAtLeast, withinBound } from "../verdicts.ts";
import { type Backoff, retryStorm } from "../workloads/retry-storm.ts";
import { scenarioOf } from "./scenario-of.ts";

function storm(backoff: Backoff, util: number): Scenario {
  return scenarioOf("retries", {
    name: `retry-storm-${backoff}`,
    question: `3000 clients that try again after a denial, backoff: ${backoff}?`,
    workload: retryStorm({ clients: 3000, thinkUs: 1_500_000, backoff }),
    verdicts: [withinBound(), longRun(), utilisationAtLeast(util)],
  });
}

export const RETRIES: readonly Scenario[] = [
  storm("none", 0.99),
  storm("exponential", 0.99),
  storm("retry-after", 0.97),
  storm("retry-after-jitter", 0.97),
];
