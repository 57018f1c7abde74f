/**
 * Pods come, go and die; the count is wrong; limits change while the fleet runs; anything at all.
 */
import type { Fault } from "../fault-plan.ts";
import { LAN } from "../network.ts";
import type { Scenario } from "../scenario.ts";
import { ONE_CHECK, salvos, together, traffic } from "../traffic.ts";
import {
  excessAtMost,
  excessPartOfBurst,
  longRun,
  podsErrorAtMost,
  rateAtLeast,
  rateAtMost,
  settlesWithin,
  utilisationAtLeast,
  withinBound,
} from "../verdicts.ts";
import { drainThenHitAll } from "../workloads/drain-then-hit-all.ts";
import { randomFaults } from "./random-faults.ts";
import { limitOf, podRange, SECOND, scenarioOf } from "./scenario-of.ts";

const FLEET = "the fleet changes";
const COUNT = "a wrong count of pods";
const CONFIG = "limits change";
const CHAOS = "anything may fail";

const DOUBLE = traffic("2 r over all pods", [{ perSecond: 2000 }]);
const TRIPLE = traffic("3 r over all pods", [{ perSecond: 3000 }]);
const TENFOLD = traffic("10 r over all pods", [{ perSecond: 10_000 }]);

/** From the very start, when every pod has counted only the pods that came before it. */
const ATTACKED_AT_START = drainThenHitAll({
  drain: 3000,
  drainUs: 500_000,
  blow: 200,
  pauseUs: 10_000,
  everyUs: 5 * SECOND,
});

const UP_AND_DOWN: readonly Fault[] = [
  { kind: "join", atUs: 10 * SECOND, count: 40 },
  { kind: "crash", atUs: 20 * SECOND, pods: podRange(10, 60) },
];

function miscount(name: string, podsFactor: number, given: Partial<Scenario>): Scenario {
  return scenarioOf(COUNT, {
    name,
    question: `Every pod believes in ${podsFactor.toFixed(2)} times as many pods as there are?`,
    workload: TENFOLD,
    terms: { membership: "store", podsFactor },
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.97)],
    ...given,
  });
}

function change(
  name: string,
  question: string,
  to: { rate: number; burst: number },
  high: number,
): Scenario {
  const part = Math.min(1, to.rate / 1000);
  return scenarioOf(CONFIG, {
    name,
    question,
    workload: TRIPLE,
    configs: [[limitOf(to)]],
    faults: () => [{ kind: "config", atUs: 10 * SECOND, set: 0, overUs: 2 * SECOND }],
    verdicts: [
      rateAtMost(10 * SECOND, 14 * SECOND, high),
      rateAtLeast(10 * SECOND, 14 * SECOND, 0.8 * part),
      rateAtMost(15 * SECOND, 30 * SECOND, Math.max(part, to.rate / 1000) * 1.02),
    ],
  });
}

export const FLEET_CHANGES: readonly Scenario[] = [
  scenarioOf(FLEET, {
    name: "attacked-at-start",
    question: "All pods start at once, one is drained, and 0.5 s later all others are asked?",
    workload: ATTACKED_AT_START,
    seeds: [1, 2, 3, 4],
    verdicts: [withinBound(), longRun()],
  }),
  scenarioOf(FLEET, {
    name: "20-60-10-crash",
    question: "20 pods become 60, then 50 of them crash: is the limit kept all the while?",
    tags: ["ci"],
    workload: TRIPLE,
    faults: () => UP_AND_DOWN,
    marks: [
      { atUs: 10 * SECOND, name: "join" },
      { atUs: 20 * SECOND, name: "crash" },
    ],
    verdicts: [
      excessPartOfBurst(0.1),
      rateAtMost(10 * SECOND, 11 * SECOND, 1.06),
      rateAtLeast(10 * SECOND, 11 * SECOND, 0.9),
      rateAtLeast(26 * SECOND, 30 * SECOND, 0.95),
      podsErrorAtMost(0),
    ],
  }),
  scenarioOf(FLEET, {
    name: "2-20-6",
    question: "2 pods become 20, and 14 of them stop in good order?",
    tags: ["ci"],
    pods: 2,
    workload: DOUBLE,
    faults: () => [
      { kind: "join", atUs: 8 * SECOND, count: 18 },
      { kind: "leave", atUs: 18 * SECOND, pods: podRange(6, 20) },
    ],
    marks: [
      { atUs: 8 * SECOND, name: "join" },
      { atUs: 18 * SECOND, name: "leave" },
    ],
    verdicts: [
      excessPartOfBurst(0.1),
      utilisationAtLeast(0.98),
      settlesWithin(2 * SECOND),
      podsErrorAtMost(0),
    ],
  }),
  scenarioOf(FLEET, {
    name: "rolling-update",
    question: "Every pod is replaced, one each half second?",
    workload: DOUBLE,
    faults: () =>
      podRange(0, 20).flatMap((pod): Fault[] => [
        { kind: "join", atUs: 8 * SECOND + pod * 500_000, count: 1 },
        { kind: "leave", atUs: 8 * SECOND + pod * 500_000 + 300_000, pods: [pod] },
      ]),
    verdicts: [excessPartOfBurst(0.1), utilisationAtLeast(0.98)],
  }),
  scenarioOf(FLEET, {
    name: "mass-crash",
    question: "50 of 60 pods crash at once: how soon do ten pods use the whole limit?",
    kind: "liveness",
    pods: 60,
    workload: DOUBLE,
    faults: () => [{ kind: "crash", atUs: 10 * SECOND, pods: podRange(10, 60) }],
    marks: [{ atUs: 10 * SECOND, name: "crash" }],
    verdicts: [
      excessPartOfBurst(0.1),
      settlesWithin(6 * SECOND),
      rateAtLeast(16 * SECOND, 30 * SECOND, 0.97),
      podsErrorAtMost(0),
    ],
  }),
  scenarioOf(FLEET, {
    name: "5-to-50-then-tenfold",
    question: "An idle fleet grows from 5 to 50 and is then hit by ten times the limit?",
    pods: 5,
    workload: traffic("0.02 r, from 10.5 s on 10 r", [
      { perSecond: (atUs) => (atUs < 10_500_000 ? 20 : 10_000), perSecondMax: 10_000 },
    ]),
    faults: () => [{ kind: "join", atUs: 10 * SECOND, count: 45 }],
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.98)],
  }),
  scenarioOf(FLEET, {
    name: "bounce",
    question: "Four pods die and come back under their names, again and again?",
    workload: DOUBLE,
    faults: () =>
      [6, 10, 14, 18, 22].map((second) => ({
        kind: "bounce",
        atUs: second * SECOND,
        forUs: 500_000,
        pods: podRange(0, 4),
      })),
    verdicts: [excessPartOfBurst(0.1), utilisationAtLeast(0.95)],
  }),
  scenarioOf(FLEET, {
    name: "hot-pod-crashes",
    question: "The pod that has all the load dies, and another gets it?",
    workload: traffic("2 r at pod 0, from 10 s on at pod 1", [
      { perSecond: 2000, pod: (_, atUs) => (atUs < 10 * SECOND ? 0 : 1) },
    ]),
    faults: () => [{ kind: "crash", atUs: 10 * SECOND, pods: [0] }],
    marks: [{ atUs: 10 * SECOND, name: "crash" }],
    verdicts: [excessPartOfBurst(0.2), rateAtLeast(11 * SECOND, 30 * SECOND, 0.95)],
  }),
  miscount("count-a-third", 1 / 3, {}),
  miscount("count-threefold", 3, {}),
  miscount("count-a-third-drain", 1 / 3, {
    question: "A third of the pods is known, and an attacker drains one pod, then hits all?",
    workload: together(
      traffic("0.02 r", [{ perSecond: 20 }]),
      salvos("3000 at pod 0 in 0.5 s, then 200 at each other pod", [
        { atUs: 10 * SECOND, count: 3000, spacingUs: 167, pod: () => 0, checks: ONE_CHECK },
        { atUs: 10_510_000, count: 3800, pod: (n) => 1 + (n % 19), checks: ONE_CHECK },
      ]),
    ),
    verdicts: [withinBound(), longRun()],
  }),
  change(
    "burst-halved",
    "The burst is halved pod by pod over 2 s?",
    { rate: 1000, burst: 500 },
    1.05,
  ),
  change("rate-halved", "Rate and burst are halved over 2 s?", { rate: 500, burst: 500 }, 1.05),
  change(
    "burst-tenfold",
    "The burst is raised tenfold over 2 s?",
    { rate: 1000, burst: 10_000 },
    1.5,
  ),
  scenarioOf(CHAOS, {
    name: "chaos-safety",
    question: "Random faults of all kinds for 30 s: does any invariant break?",
    tags: ["ci"],
    seeds: [1, 2, 3, 4, 5, 6, 7, 8],
    link: { ...LAN, loss: 0.02, duplicate: 0.02 },
    workload: DOUBLE,
    faults: (random) => randomFaults(random, { untilUs: 30 * SECOND, pods: 20, count: 12 }),
    verdicts: [],
  }),
  scenarioOf(CHAOS, {
    name: "chaos-liveness",
    question: "Random faults for 20 s that then end: is the fleet back at the limit 10 s later?",
    kind: "liveness",
    seeds: [1, 2, 3, 4, 5, 6, 7, 8],
    durationUs: 45 * SECOND,
    workload: DOUBLE,
    faults: (random) => randomFaults(random, { untilUs: 20 * SECOND, pods: 20, count: 12 }),
    verdicts: [
      rateAtLeast(35 * SECOND, 45 * SECOND, 0.97),
      rateAtMost(35 * SECOND, 45 * SECOND, 1.02),
    ],
  }),
  scenarioOf(FLEET, {
    name: "join-without-burst",
    question: "Ten saturated pods are joined by five: do the new ones bring a burst along?",
    pods: 10,
    durationUs: 60 * SECOND,
    limits: [limitOf({ rate: 100 })],
    workload: traffic("4 r over all pods", [{ perSecond: 400 }]),
    faults: () => [
      { kind: "join", atUs: 20 * SECOND, count: 5 },
      { kind: "leave", atUs: 40 * SECOND, pods: podRange(10, 15) },
    ],
    verdicts: [
      excessAtMost(10),
      rateAtMost(20 * SECOND, 30 * SECOND, 1.1),
      rateAtLeast(42 * SECOND, 60 * SECOND, 0.95),
    ],
  }),
];
