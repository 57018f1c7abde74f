/**
 * Pods in different modes on one key, limits of different modes on one request, and modes that the
 * engine chooses by itself.
 */
import { horizontalPodAutoscaler } from "../autoscaler.ts";
import { LAN } from "../network.ts";
import type { Scenario, Verdict } from "../scenario.ts";
import type { SimCheck } from "../scheme.ts";
import { onOff, salvos, traffic } from "../traffic.ts";
import {
  answeredWithin,
  callsPerAdmitAtMost,
  excessAtMost,
  excessPartOfBurst,
  jainAtLeast,
  longRun,
  podsErrorAtMost,
  rateAtLeast,
  rateAtMost,
  safe,
  utilisationAtLeast,
  withinBound,
} from "../verdicts.ts";
import type { Workload } from "../workload.ts";
import { limitOf, podRange, SECOND, scenarioOf } from "./scenario-of.ts";

const MIXED = "pods of different modes";
const MANY = "limits of different modes";
const AUTO = "modes chosen by the engine";

type Mode = "hybrid" | "leased" | "exact";

const DOUBLE = traffic("2 r over all pods", [{ perSecond: 2000 }]);
/** Empties the bucket through pods of one half, then asks all. */
const DRAINS = salvos(
  "3000 at pods 0 to 2 in 0.5 s, then 200 at each other pod at once, every 5 s",
  [5, 10, 15, 20, 25].flatMap((second) => [
    { atUs: second * SECOND, count: 3000, spacingUs: 167, pod: (n: number) => n % 3 },
    { atUs: second * SECOND + 510_000, count: 3400, pod: (n: number) => 3 + (n % 17) },
  ]),
);

/** A pod changes to the other mode every 2.5 s: at the end of the run twelve of twenty have. */
function half(
  from: Mode,
  to: Mode,
  workload: Workload,
  name: string,
  verdicts: Verdict[],
): Scenario {
  const overUs = 50 * SECOND;
  return scenarioOf(MIXED, {
    name: `half-${from}-half-${to}${name}`,
    question: `Half of the pods keep a limit as ${from}, half as ${to}: do they add up?`,
    limits: [limitOf({ mode: from, fallback: CLOSED })],
    configs: [[limitOf({ mode: to, fallback: CLOSED })]],
    faults: () => [{ kind: "config", atUs: 0, set: 0, overUs }],
    workload,
    verdicts,
  });
}

/** Every pod changes within two seconds. */
function rolling(
  from: Mode,
  to: Mode,
  verdicts: Verdict[],
  given: Partial<Scenario> = {},
): Scenario {
  return scenarioOf(MIXED, {
    name: `roll-${from}-to-${to}`,
    question: `A limit changes from ${from} to ${to}, pod after pod, under overload?`,
    durationUs: 20 * SECOND,
    limits: [limitOf({ mode: from, fallback: CLOSED })],
    configs: [[limitOf({ mode: to, fallback: CLOSED })]],
    faults: () => [{ kind: "config", atUs: 8 * SECOND, set: 0, overUs: 2 * SECOND }],
    workload: DOUBLE,
    verdicts: [...verdicts, utilisationAtLeast(0.97), rateAtLeast(12 * SECOND, 20 * SECOND, 0.97)],
    ...given,
  });
}

const CLOSED = { policy: "closed", margin: 0.9, maxPods: 20 } as const;

const THREE: readonly SimCheck[] = [
  { limit: 0, key: "k", cost: 1 },
  { limit: 1, key: "k", cost: 1 },
  { limit: 2, key: "k", cost: 1 },
];

/** A tight and a loose exact limit: tokens of the loose one are given back all the time. */
function twoExact(name: string, question: string, given: Partial<Scenario>): Scenario {
  return scenarioOf(MANY, {
    name,
    question,
    durationUs: 20 * SECOND,
    limits: [
      limitOf({ name: "tight", rate: 300, mode: "exact", fallback: CLOSED }),
      limitOf({ name: "loose", rate: 1000, mode: "exact", fallback: CLOSED }),
    ],
    workload: traffic("600/s of both, 900/s of the loose one alone", [
      { perSecond: 600, checks: () => THREE.slice(0, 2) },
      { perSecond: 900, checks: () => THREE.slice(1, 2) },
    ]),
    verdicts: [withinBound(), utilisationAtLeast(0.97)],
    ...given,
  });
}

/** One limit of each mode, the tight one in the mode given. */
function threeModes(tight: Mode): Scenario {
  const rate = (mode: Mode): number => (mode === tight ? 300 : 2000);
  return scenarioOf(MANY, {
    name: `three-modes-${tight}-tight`,
    question: `Hybrid, leased and exact on each request, the ${tight} one denies: who pays for it?`,
    durationUs: 20 * SECOND,
    limits: [
      limitOf({ name: "hybrid", rate: rate("hybrid"), fallback: CLOSED }),
      limitOf({ name: "leased", rate: rate("leased"), mode: "leased", fallback: CLOSED }),
      limitOf({ name: "exact", rate: rate("exact"), mode: "exact", fallback: CLOSED }),
    ],
    workload: traffic("1000/s over all pods", [{ perSecond: 1000, checks: () => THREE }]),
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.97), answeredWithin(11_000)],
  });
}

export const MIXED_MODES: readonly Scenario[] = [
  half("hybrid", "leased", DOUBLE, "", [withinBound(), utilisationAtLeast(0.98), jainAtLeast(0.9)]),
  half("hybrid", "exact", DOUBLE, "", [withinBound(), utilisationAtLeast(0.98), jainAtLeast(0.9)]),
  half("hybrid", "leased", DRAINS, "-drained", [withinBound(), longRun()]),
  half("hybrid", "exact", DRAINS, "-drained", [withinBound(), longRun()]),
  half("leased", "exact", DOUBLE, "", [withinBound(), utilisationAtLeast(0.98)]),
  rolling("hybrid", "leased", [withinBound()]),
  { ...rolling("leased", "hybrid", [excessPartOfBurst(0.3)]), tags: ["ci"] },
  rolling("exact", "hybrid", [excessPartOfBurst(0.3)]),
  rolling("leased", "exact", [excessAtMost(50)]),
  rolling("leased", "exact", [], {
    name: "roll-leased-to-exact-half-load",
    question: "A limit changes from leased to exact at half load: is anybody refused for it?",
    workload: traffic("0.5 r over all pods", [{ perSecond: 500 }]),
    verdicts: [safe(), excessAtMost(0), utilisationAtLeast(0.99)],
  }),
  rolling("exact", "leased", [excessAtMost(50)]),
  ...(["leased", "exact"] as const).map((mode) =>
    scenarioOf(MIXED, {
      name: `${mode}-rate-and-burst-halved`,
      question: `Rate and burst of a limit kept as ${mode} are halved over 2 s?`,
      durationUs: 20 * SECOND,
      limits: [limitOf({ mode, fallback: CLOSED })],
      configs: [[limitOf({ mode, rate: 500, fallback: CLOSED })]],
      faults: () => [{ kind: "config", atUs: 8 * SECOND, set: 0, overUs: 2 * SECOND }],
      workload: DOUBLE,
      verdicts: [
        excessPartOfBurst(0.3),
        rateAtMost(11 * SECOND, 20 * SECOND, 0.51),
        rateAtLeast(11 * SECOND, 20 * SECOND, 0.48),
      ],
    }),
  ),
  { ...threeModes("hybrid"), tags: ["ci"] },
  threeModes("leased"),
  threeModes("exact"),
  twoExact(
    "two-exact-limits",
    "A tight and a loose exact limit: does the loose one get back what the tight denied?",
    {},
  ),
  twoExact(
    "two-exact-limits-late",
    "One message in five is 150 ms late: is what is given back too late credited all the same?",
    { link: { ...LAN, reorder: 0.2, reorderUs: 150_000 }, verdicts: [safe(), withinBound()] },
  ),
  scenarioOf(AUTO, {
    name: "auto-ordinary",
    question: "An ordinary limit left to the engine: is it shared, and cheap?",
    durationUs: 20 * SECOND,
    limits: [limitOf({ mode: "auto" })],
    workload: DOUBLE,
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.98), callsPerAdmitAtMost(0.25)],
  }),
  scenarioOf(AUTO, {
    name: "auto-small",
    question: "r = b = 10 over 20 pods left to the engine: is it decided in the store?",
    durationUs: 60 * SECOND,
    limits: [limitOf({ rate: 10, mode: "auto" })],
    workload: traffic("3 r, a third of the time", [
      { perSecond: onOff(30, 0, 2 * SECOND, 6 * SECOND), perSecondMax: 30 },
    ]),
    verdicts: [withinBound(), utilisationAtLeast(0.99), answeredWithin(11_000)],
  }),
  scenarioOf(AUTO, {
    name: "auto-short-burst",
    question: "r = 1000/s with b = 100 left to the engine: is it handed out beforehand?",
    durationUs: 20 * SECOND,
    limits: [limitOf({ burst: 100, mode: "auto" })],
    workload: DOUBLE,
    verdicts: [excessAtMost(0), utilisationAtLeast(0.98)],
  }),
  scenarioOf(AUTO, {
    name: "auto-2-20-6",
    question: "b = 60 left to the engine while the fleet grows from 2 pods to 20 and shrinks to 6?",
    pods: 2,
    durationUs: 40 * SECOND,
    limits: [limitOf({ rate: 60, mode: "auto" })],
    workload: traffic("2 r over all pods", [{ perSecond: 120 }]),
    faults: () => [
      { kind: "join", atUs: 10 * SECOND, count: 18 },
      { kind: "leave", atUs: 20 * SECOND, pods: podRange(6, 20) },
    ],
    verdicts: [excessPartOfBurst(0.5), utilisationAtLeast(0.97), podsErrorAtMost(0)],
  }),
  scenarioOf(AUTO, {
    name: "autoscaled",
    question: "A Kubernetes autoscaler follows load from 0.2 r to 3 r and back: is the limit kept?",
    pods: 2,
    durationUs: 70 * SECOND,
    autoscaler: horizontalPodAutoscaler({
      minPods: 2,
      maxPods: 20,
      targetPerPod: 150,
      periodUs: 5 * SECOND,
      startupUs: 2 * SECOND,
      downUs: 15 * SECOND,
    }),
    workload: traffic("0.2 r, 3 r from 10 s, 0.2 r again from 35 s", [
      {
        perSecond: (atUs) => (atUs > 10 * SECOND && atUs < 35 * SECOND ? 3000 : 200),
        perSecondMax: 3000,
      },
    ]),
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.99), podsErrorAtMost(0)],
  }),
];
