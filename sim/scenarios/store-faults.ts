/** The store slow, away, flapping, failed over, emptied, and with its clock moved. */
import type { Fault } from "../fault-plan.ts";
import type { Scenario } from "../scenario.ts";
import { traffic } from "../traffic.ts";
import {
  excessAtMost,
  excessPartOfBurst,
  rateAtLeast,
  rateAtMost,
  settlesWithin,
  utilisationAtLeast,
  utilisationAtMost,
} from "../verdicts.ts";
import { SECOND, scenarioOf } from "./scenario-of.ts";

const AWAY = "store away";
const LOSS = "store loses data";
const CLOCK = "store's clock";

const DOUBLE = traffic("2 r over all pods", [{ perSecond: 2000 }]);
const HALF = traffic("0.5 r over all pods", [{ perSecond: 500 }]);

function away(name: string, how: "refuse" | "hang", given: Partial<Scenario>): Scenario {
  return scenarioOf(AWAY, {
    name,
    question: `The store ${how === "hang" ? "hangs" : "refuses"} for 10 s under overload?`,
    kind: "liveness",
    workload: DOUBLE,
    faults: () => [{ kind: "store-down", atUs: 10 * SECOND, forUs: 10 * SECOND, how }],
    marks: [{ atUs: 20 * SECOND, name: "store back" }],
    verdicts: [
      rateAtMost(12 * SECOND, 20 * SECOND, 0.9 * 1.01),
      rateAtLeast(12 * SECOND, 20 * SECOND, 0.88),
      excessPartOfBurst(0.3),
      rateAtMost(20 * SECOND, 25 * SECOND, 1.3),
      settlesWithin(5 * SECOND),
    ],
    ...given,
  });
}

function flap(name: string, everyS: number, downS: number): Scenario {
  return scenarioOf(AWAY, {
    name,
    question: `The store is away ${downS} s of every ${everyS} s?`,
    workload: DOUBLE,
    faults: () => [
      {
        kind: "store-flap",
        atUs: 5 * SECOND,
        forUs: 20 * SECOND,
        everyUs: everyS * SECOND,
        downUs: downS * SECOND,
      },
    ],
    verdicts: [excessAtMost(100), utilisationAtLeast(0.93), utilisationAtMost(1.01)],
  });
}

function lostData(name: string, question: string, faults: Fault[], excess: number): Scenario {
  return scenarioOf(LOSS, {
    name,
    question,
    kind: "liveness",
    workload: DOUBLE,
    faults: () => faults,
    marks: [{ atUs: Math.max(...faults.map((fault) => fault.atUs)), name: "data lost" }],
    verdicts: [
      excessAtMost(excess),
      settlesWithin(5 * SECOND),
      rateAtLeast(10 * SECOND, 15 * SECOND, 0.9),
      rateAtLeast(18 * SECOND, 30 * SECOND, 0.97),
    ],
  });
}

function step(name: string, byS: number): Scenario {
  return scenarioOf(CLOCK, {
    name,
    question: `The store's clock steps by ${byS} s: does time mint tokens, or stop?`,
    workload: DOUBLE,
    faults: () => [{ kind: "store-clock", atUs: 10 * SECOND, byUs: byS * SECOND }],
    verdicts: [
      excessPartOfBurst(0.1),
      rateAtMost(10 * SECOND, 12 * SECOND, 1.06),
      rateAtLeast(10 * SECOND, 12 * SECOND, 0.9),
      utilisationAtLeast(0.98),
    ],
  });
}

export const STORE_FAULTS: readonly Scenario[] = [
  away("store-refuses-10s", "refuse", { tags: ["ci"] }),
  away("store-hangs-10s", "hang", {}),
  scenarioOf(AWAY, {
    name: "store-away-at-half-load",
    question: "The store is away for 10 s while the limit is far: is anybody refused for nothing?",
    kind: "liveness",
    workload: HALF,
    faults: () => [{ kind: "store-down", atUs: 10 * SECOND, forUs: 10 * SECOND, how: "hang" }],
    verdicts: [excessPartOfBurst(0.1), utilisationAtLeast(0.97)],
  }),
  scenarioOf(AWAY, {
    name: "store-away-from-the-start",
    question: "The fleet starts without a store, which comes after 10 s?",
    kind: "liveness",
    workload: DOUBLE,
    faults: () => [{ kind: "store-down", atUs: 0, forUs: 10 * SECOND, how: "refuse" }],
    marks: [{ atUs: 10 * SECOND, name: "store there" }],
    verdicts: [
      rateAtMost(3 * SECOND, 10 * SECOND, 0.9 * 1.01),
      excessPartOfBurst(0.3),
      settlesWithin(5 * SECOND),
    ],
  }),
  scenarioOf(AWAY, {
    name: "burst-before-healing",
    question: "0.2 r during an outage, then ten times the limit just before the store is back?",
    workload: traffic("0.2 r, 10 r from 19 s to 21 s, then 2 r", [
      {
        perSecond: (atUs) => (atUs < 19 * SECOND ? 200 : atUs < 21 * SECOND ? 10_000 : 2000),
        perSecondMax: 10_000,
      },
    ]),
    faults: () => [{ kind: "store-down", atUs: 10 * SECOND, forUs: 9_800_000, how: "hang" }],
    verdicts: [excessPartOfBurst(0.3)],
  }),
  flap("store-flaps-1-in-2s", 2, 1),
  flap("store-flaps-0.3-in-2s", 2, 0.3),
  flap("store-flaps-1.2-in-3s", 3, 1.2),
  scenarioOf(AWAY, {
    name: "store-slow-20ms",
    question: "Every call takes 20 ms longer for 10 s?",
    workload: DOUBLE,
    faults: () => [{ kind: "store-slow", atUs: 10 * SECOND, forUs: 10 * SECOND, byUs: 20_000 }],
    verdicts: [excessPartOfBurst(0.1), utilisationAtLeast(0.97)],
  }),
  scenarioOf(AWAY, {
    name: "store-slower-than-the-timeout",
    question: "Every call takes 200 ms, more than the command timeout, for 10 s?",
    kind: "liveness",
    workload: DOUBLE,
    faults: () => [{ kind: "store-slow", atUs: 10 * SECOND, forUs: 10 * SECOND, byUs: 200_000 }],
    marks: [{ atUs: 20 * SECOND, name: "quick again" }],
    verdicts: [excessPartOfBurst(0.3), settlesWithin(5 * SECOND)],
  }),
  lostData(
    "failover-0.2s",
    "Failover to a replica that is 0.2 s old: is what it lacks counted again?",
    [{ kind: "store-failover", atUs: 10 * SECOND, lagUs: 200_000 }],
    200,
  ),
  lostData(
    "failover-1s",
    "Failover to a replica that is 1 s old?",
    [{ kind: "store-failover", atUs: 10 * SECOND, lagUs: SECOND }],
    250,
  ),
  {
    ...lostData(
      "store-emptied",
      "FLUSHALL under overload: is there a second burst?",
      [{ kind: "store-empty", atUs: 10 * SECOND }],
      120,
    ),
    tags: ["ci"],
  },
  lostData(
    "store-emptied-thrice",
    "FLUSHALL three times in 6 s?",
    [10, 13, 16].map((second): Fault => ({ kind: "store-empty", atUs: second * SECOND })),
    200,
  ),
  lostData(
    "failover-and-flap",
    "The primary is away for 2 s, then a replica 0.5 s old takes over?",
    [
      { kind: "store-down", atUs: 10 * SECOND, forUs: 2 * SECOND, how: "hang" },
      { kind: "store-failover", atUs: 12 * SECOND, lagUs: 2_500_000 },
    ],
    400,
  ),
  step("store-clock+10s", 10),
  step("store-clock+1.5s", 1.5),
  step("store-clock-1.5s", -1.5),
  step("store-clock-10s", -10),
];
