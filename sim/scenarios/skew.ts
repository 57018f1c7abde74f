/** Load that is not even: one hot pod, a hot pod that moves, Zipf over pods, an attacker. */
import type { Scenario } from "../scenario.ts";
import { onOff, salvos, traffic, zipf } from "../traffic.ts";
import {
  callsPerAdmitAtMost,
  jainAtLeast,
  longRun,
  utilisationAtLeast,
  withinBound,
} from "../verdicts.ts";
import { limitOf, SECOND, scenarioOf } from "./scenario-of.ts";

const THEME = "skewed load";

function moving(name: string, periodS: number, util: number, given: Partial<Scenario>): Scenario {
  return scenarioOf(THEME, {
    name,
    question: `A hot pod that moves every ${periodS} s: does the rate follow it?`,
    workload: traffic(`2 r at one pod, another every ${periodS} s`, [
      { perSecond: 2000, pod: (_, atUs) => Math.floor(atUs / (periodS * SECOND)) % 20 },
    ]),
    verdicts: [withinBound(), longRun(), utilisationAtLeast(util)],
    ...given,
  });
}

export const SKEW: readonly Scenario[] = [
  scenarioOf(THEME, {
    name: "lone-hot-pod",
    question: "All load at one pod of twenty: does it get the whole limit?",
    tags: ["ci"],
    workload: traffic("2 r at pod 0", [{ perSecond: 2000, pod: () => 0 }]),
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.99), callsPerAdmitAtMost(0.06)],
  }),
  scenarioOf(THEME, {
    name: "hot-with-background",
    question: "A hot pod beside nineteen that ask for little: do the modest ones get their part?",
    workload: traffic("2 r at pod 0, 5/s at each other pod", [
      { perSecond: 2000, pod: () => 0, client: 1 },
      { perSecond: 95, pod: (random) => 1 + random.below(19), client: 2 },
    ]),
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.99), jainAtLeast(0.95)],
  }),
  moving("moving-hot-0.3s", 0.3, 0.98, {}),
  moving("moving-hot-1s", 1, 0.99, {}),
  moving("moving-hot-3s", 3, 0.99, { tags: ["ci"] }),
  moving("moving-hot-1s-small-burst", 1, 0.97, {
    limits: [limitOf({ burst: 300 })],
    question: "A hot pod that moves every second, with a burst of 0.3 s of r?",
  }),
  scenarioOf(THEME, {
    name: "zipf-over-pods",
    question: "Pods of very different popularity at 2.9 r: is the limit kept and used?",
    workload: traffic("2.9 r, Zipf over pods", [{ perSecond: 2900, pod: zipf(20, 1) }]),
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.995), jainAtLeast(0.9)],
  }),
  scenarioOf(THEME, {
    name: "bursts-on-one",
    question: "Five times the limit at one pod, one second in five, from rest?",
    workload: traffic("5 r at pod 0 for 1 s of 5, else nothing", [
      {
        perSecond: onOff(5000, 0, SECOND, 5 * SECOND),
        perSecondMax: 5000,
        pod: () => 0,
      },
    ]),
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.95)],
  }),
  scenarioOf(THEME, {
    name: "drain-one-then-hit-all",
    question: "An attacker empties the bucket through one pod, then asks all others at once?",
    tags: ["ci"],
    workload: salvos(
      "3000 at pod 0 in 0.5 s, then 200 at each other pod at once, every 5 s",
      [5, 10, 15, 20, 25].flatMap((second) => [
        { atUs: second * SECOND, count: 3000, spacingUs: 167, pod: () => 0 },
        { atUs: second * SECOND + 510_000, count: 3800, pod: (n: number) => 1 + (n % 19) },
      ]),
    ),
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.95)],
  }),
  scenarioOf(THEME, {
    name: "poke-idle-pods",
    question: "One pod hot, the others ask once every 5.4 s: is cold stock given again and again?",
    durationUs: 300 * SECOND,
    limits: [limitOf({ rate: 1, burst: 3600 })],
    workload: traffic("50/s at pod 0, 10 at once at each other pod every 5.4 s", [
      { perSecond: 50, pod: () => 0 },
      { perSecond: 35, pod: (_, atUs) => 1 + (Math.floor(atUs / 284_000) % 19) },
    ]),
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.97)],
  }),
];
