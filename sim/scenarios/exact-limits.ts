/**
 * Limits too small to split, or that must be followed to the token: every check is decided in the
 * store. In its order nothing is exceeded (a law); as pods answer, by what refills in 50 ms.
 */
import type { Scenario, Verdict } from "../scenario.ts";
import { onOff, traffic } from "../traffic.ts";
import {
  answeredWithin,
  callsPerAdmitAtMost,
  jainAtLeast,
  rateAtLeast,
  rateAtMost,
  settlesWithin,
  utilisationAtLeast,
  withinBound,
} from "../verdicts.ts";
import { FLEET_CHANGES } from "./fleet-changes.ts";
import { NETWORK_FAULTS } from "./network-faults.ts";
import { REQUESTS } from "./requests.ts";
import { inMode, limitOf, named, SECOND, scenarioOf } from "./scenario-of.ts";
import { SKEW } from "./skew.ts";
import { STEADY } from "./steady.ts";
import { STORE_FAULTS } from "./store-faults.ts";

function exact(
  file: readonly Scenario[],
  name: string,
  verdicts: readonly Verdict[],
  given: Partial<Scenario> = {},
): Scenario {
  const terms = { mode: "exact", verdicts: [withinBound(), ...verdicts] } as const;
  return inMode(named(file, name), terms, given);
}

const SHORT = { durationUs: 15 * SECOND };

/** Rate and burst alike over 20 pods, so that a pod's part is from 0.05 to 5 tokens. */
function small(burst: number, load: "even" | "bursts", given: Partial<Scenario> = {}): Scenario {
  const rate = burst;
  const isEven = load === "even";
  return scenarioOf("exact limits", {
    name: `exact-small-${burst}-${load}`,
    question: `r = b = ${burst} over 20 pods, ${load} load: what one bucket would admit?`,
    // Long enough that a hundredth of what is admitted is many tokens: which pod asks first when
    // the one token is back is chance, and in five minutes a single lost token is that hundredth.
    durationUs: (burst < 10 ? 3600 : 60) * SECOND,
    limits: [limitOf({ rate, mode: "exact" })],
    workload: isEven
      ? traffic("2 r over all pods", [{ perSecond: 2 * rate }])
      : traffic("6 r for 2 s of 6, else nothing", [
          {
            perSecond: onOff(6 * rate, 0, 2 * SECOND, 6 * SECOND),
            perSecondMax: 6 * rate,
          },
        ]),
    verdicts: [withinBound(), utilisationAtLeast(0.99), answeredWithin(11_000)],
    ...given,
  });
}

export const EXACT_LIMITS: readonly Scenario[] = [
  exact(STEADY, "steady-0.5x", [utilisationAtLeast(0.99), callsPerAdmitAtMost(1.1)], SHORT),
  exact(
    STEADY,
    "steady-2x",
    [utilisationAtLeast(0.99), callsPerAdmitAtMost(1.9), jainAtLeast(0.95), answeredWithin(11_000)],
    { ...SHORT, tags: ["ci"] },
  ),
  exact(STEADY, "steady-10x", [utilisationAtLeast(0.99), callsPerAdmitAtMost(3)], SHORT),
  exact(STEADY, "bursts-on-all", [utilisationAtLeast(0.99)], SHORT),
  exact(SKEW, "lone-hot-pod", [utilisationAtLeast(0.99)], SHORT),
  exact(SKEW, "moving-hot-0.3s", [utilisationAtLeast(0.99)], SHORT),
  exact(SKEW, "zipf-over-pods", [utilisationAtLeast(0.99), jainAtLeast(0.95)], SHORT),
  exact(SKEW, "drain-one-then-hit-all", [utilisationAtLeast(0.95)], SHORT),
  exact(REQUESTS, "costs-1-5-20", [utilisationAtLeast(0.98)], SHORT),
  exact(REQUESTS, "costs-quarter-burst", [utilisationAtLeast(0.98)], SHORT),
  exact(REQUESTS, "two-of-four-limits", [utilisationAtLeast(0.95)], SHORT),
  small(1, "even"),
  small(1, "bursts"),
  small(10, "even", { tags: ["ci"] }),
  small(10, "bursts"),
  small(20, "even"),
  small(100, "even"),
  small(100, "bursts"),
  exact(REQUESTS, "user-burst", [utilisationAtLeast(0.98), answeredWithin(11_000)]),
  exact(NETWORK_FAULTS, "loss-10", [utilisationAtLeast(0.7)], SHORT),
  exact(NETWORK_FAULTS, "duplicates-and-reordering", [utilisationAtLeast(0.9)], SHORT),
  exact(NETWORK_FAULTS, "hold-and-release", [rateAtLeast(20 * SECOND, 30 * SECOND, 0.97)]),
  exact(NETWORK_FAULTS, "stall-2s", [utilisationAtLeast(0.97)]),
  exact(
    STORE_FAULTS,
    "store-hangs-10s",
    [rateAtMost(12 * SECOND, 20 * SECOND, 0), settlesWithin(5 * SECOND), answeredWithin(11_000)],
    { tags: ["ci"] },
  ),
  exact(STORE_FAULTS, "store-slow-20ms", [rateAtLeast(22 * SECOND, 30 * SECOND, 0.97)]),
  exact(STORE_FAULTS, "failover-1s", [settlesWithin(5 * SECOND)]),
  exact(STORE_FAULTS, "store-emptied", [settlesWithin(5 * SECOND)]),
  exact(STORE_FAULTS, "store-clock+10s", [utilisationAtLeast(0.98)]),
  exact(STORE_FAULTS, "store-clock-10s", [utilisationAtLeast(0.98)]),
  exact(FLEET_CHANGES, "20-60-10-crash", [rateAtLeast(26 * SECOND, 30 * SECOND, 0.95)]),
  inMode(named(FLEET_CHANGES, "chaos-safety"), {
    mode: "exact",
    verdicts: [],
  }),
];
