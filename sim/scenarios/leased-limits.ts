/**
 * Limits that must never be exceeded: loads and faults of the other scenarios, with tokens that the
 * store hands out beforehand. Whatever fails, nothing is admitted beyond `b + r T`.
 */
import type { Scenario, Verdict } from "../scenario.ts";
import { traffic } from "../traffic.ts";
import {
  answeredWithin,
  callsPerAdmitAtMost,
  excessAtMost,
  jainAtLeast,
  rateAtLeast,
  rateAtMost,
  settlesWithin,
  utilisationAtLeast,
} from "../verdicts.ts";
import { FLEET_CHANGES } from "./fleet-changes.ts";
import { NETWORK_FAULTS } from "./network-faults.ts";
import { REQUESTS } from "./requests.ts";
import {
  inMode,
  limitInMode,
  limitOf,
  named,
  podRange,
  SECOND,
  scenarioOf,
} from "./scenario-of.ts";
import { SKEW } from "./skew.ts";
import { STEADY } from "./steady.ts";
import { STORE_FAULTS } from "./store-faults.ts";

const THEME = "leased limits";
const NEVER_EXCEEDED = excessAtMost(0);

/** A scenario of another file with its limits leased, and closed without a store. */
function leased(
  file: readonly Scenario[],
  name: string,
  verdicts: readonly Verdict[],
  given: Partial<Scenario> = {},
): Scenario {
  const terms = { mode: "leased", verdicts: [NEVER_EXCEEDED, ...verdicts] } as const;
  return inMode(named(file, name), terms, given);
}

const SHORT = { durationUs: 15 * SECOND };

export const LEASED_LIMITS: readonly Scenario[] = [
  leased(STEADY, "steady-0.5x", [utilisationAtLeast(0.99), callsPerAdmitAtMost(0.4)], SHORT),
  leased(
    STEADY,
    "steady-2x",
    [utilisationAtLeast(0.99), callsPerAdmitAtMost(0.4), jainAtLeast(0.99), answeredWithin(11_000)],
    { tags: ["ci"] },
  ),
  leased(STEADY, "steady-10x", [utilisationAtLeast(0.99), callsPerAdmitAtMost(0.45)], SHORT),
  leased(STEADY, "one-pod-2x", [utilisationAtLeast(0.99), callsPerAdmitAtMost(0.06)], SHORT),
  leased(STEADY, "bursts-on-all", [utilisationAtLeast(0.97)], SHORT),
  leased(SKEW, "lone-hot-pod", [utilisationAtLeast(0.99), callsPerAdmitAtMost(0.06)], SHORT),
  leased(SKEW, "hot-with-background", [utilisationAtLeast(0.98), jainAtLeast(0.95)], SHORT),
  leased(SKEW, "moving-hot-0.3s", [utilisationAtLeast(0.97)], SHORT),
  leased(SKEW, "moving-hot-3s", [utilisationAtLeast(0.97)], SHORT),
  leased(SKEW, "zipf-over-pods", [utilisationAtLeast(0.99), jainAtLeast(0.87)], SHORT),
  leased(SKEW, "drain-one-then-hit-all", [utilisationAtLeast(0.9)], SHORT),
  leased(REQUESTS, "costs-1-5-20-half", [utilisationAtLeast(0.92)], SHORT),
  leased(REQUESTS, "costs-1-5-20", [utilisationAtLeast(0.92)], SHORT),
  leased(REQUESTS, "costs-50", [utilisationAtLeast(0.92)], SHORT),
  scenarioOf(THEME, {
    name: "leased-short-burst",
    question: "r = 1000/s with b = 0.1 s of r, leased at 2 r: is so small a burst used?",
    durationUs: 15 * SECOND,
    limits: [limitOf({ burst: 100, mode: "leased" })],
    workload: traffic("2 r over all pods", [{ perSecond: 2000 }]),
    verdicts: [NEVER_EXCEEDED, utilisationAtLeast(0.99), callsPerAdmitAtMost(1)],
  }),
  leased(NETWORK_FAULTS, "rtt-20ms", [utilisationAtLeast(0.9)], SHORT),
  leased(NETWORK_FAULTS, "loss-10", [utilisationAtLeast(0.85)], SHORT),
  leased(NETWORK_FAULTS, "duplicates-and-reordering", [utilisationAtLeast(0.95)], SHORT),
  leased(NETWORK_FAULTS, "one-way-loss", []),
  leased(NETWORK_FAULTS, "hold-and-release", [rateAtLeast(20 * SECOND, 30 * SECOND, 0.97)]),
  leased(NETWORK_FAULTS, "partition-30", [rateAtLeast(28 * SECOND, 40 * SECOND, 0.97)]),
  inMode(
    named(NETWORK_FAULTS, "partition-30"),
    {
      mode: "leased",
      policy: "local",
      verdicts: [
        rateAtMost(15 * SECOND, 22 * SECOND, 1.02),
        rateAtLeast(15 * SECOND, 22 * SECOND, 0.85),
        rateAtLeast(28 * SECOND, 40 * SECOND, 0.97),
      ],
    },
    { name: "leased-local-partition-30" },
  ),
  leased(NETWORK_FAULTS, "stall-2s", [utilisationAtLeast(0.97)]),
  leased(NETWORK_FAULTS, "stall-at-half-load", [utilisationAtLeast(0.97)], SHORT),
  // A clock that stands still does not see its leases end.
  inMode(named(NETWORK_FAULTS, "vm-pause-5s"), {
    mode: "leased",
    verdicts: [excessAtMost(200), rateAtLeast(21 * SECOND, 30 * SECOND, 0.97)],
  }),
  leased(NETWORK_FAULTS, "pod-clocks", [utilisationAtLeast(0.99)], SHORT),
  leased(STORE_FAULTS, "store-slow-20ms", [utilisationAtLeast(0.7)]),
  leased(
    STORE_FAULTS,
    "store-hangs-10s",
    [rateAtMost(12 * SECOND, 20 * SECOND, 0), settlesWithin(5 * SECOND), answeredWithin(11_000)],
    { tags: ["ci"] },
  ),
  leased(STORE_FAULTS, "store-refuses-10s", [
    rateAtMost(12 * SECOND, 20 * SECOND, 0),
    settlesWithin(5 * SECOND),
  ]),
  leased(STORE_FAULTS, "store-flaps-0.3-in-2s", [utilisationAtLeast(0.6)]),
  inMode(
    named(STORE_FAULTS, "store-hangs-10s"),
    {
      mode: "leased",
      policy: "local",
      verdicts: [
        NEVER_EXCEEDED,
        rateAtMost(12 * SECOND, 20 * SECOND, 0.9 * 1.01),
        rateAtLeast(12 * SECOND, 20 * SECOND, 0.85),
        settlesWithin(5 * SECOND),
      ],
    },
    { name: "leased-local-store-hangs-10s" },
  ),
  leased(STORE_FAULTS, "failover-1s", [settlesWithin(5 * SECOND)]),
  leased(STORE_FAULTS, "store-emptied", [settlesWithin(5 * SECOND)]),
  leased(STORE_FAULTS, "store-clock+10s", [utilisationAtLeast(0.98)]),
  leased(STORE_FAULTS, "store-clock-10s", [utilisationAtLeast(0.98)]),
  leased(FLEET_CHANGES, "20-60-10-crash", [rateAtLeast(26 * SECOND, 30 * SECOND, 0.95)]),
  leased(FLEET_CHANGES, "rolling-update", [utilisationAtLeast(0.97)]),
  leased(FLEET_CHANGES, "bounce", [utilisationAtLeast(0.95)]),
  inMode(named(FLEET_CHANGES, "chaos-safety"), {
    mode: "leased",
    verdicts: [],
  }),
  scenarioOf(THEME, {
    name: "leased-crashes",
    question: "Five of twenty pods die with their leases, three times: is anything counted twice?",
    limits: [limitInMode(limitOf({}), "leased")],
    workload: traffic("2 r over all pods", [{ perSecond: 2000 }]),
    faults: () =>
      [8, 14, 20].map((second) => ({
        kind: "bounce",
        atUs: second * SECOND,
        forUs: 2 * SECOND,
        pods: podRange(0, 5),
      })),
    verdicts: [NEVER_EXCEEDED, utilisationAtLeast(0.985)],
  }),
];
