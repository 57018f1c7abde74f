/**
 * Even load on all pods, from half the limit to ten times as much, and slow or sudden changes of
 * it.
 */
import type { Scenario } from "../scenario.ts";
import { ONE_CHECK, onOff, ramp, salvos, together, traffic } from "../traffic.ts";
import {
  callsPerAdmitAtMost,
  heldPartAtMost,
  jainAtLeast,
  longRun,
  settlesWithin,
  utilisationAtLeast,
  withinBound,
} from "../verdicts.ts";
import { SECOND, scenarioOf } from "./scenario-of.ts";

const THEME = "even load";

function steady(name: string, times: number, given: Partial<Scenario>): Scenario {
  return scenarioOf(THEME, {
    name,
    question: `What does even load of ${times} r get?`,
    workload: traffic(`${times} r over all pods`, [{ perSecond: times * 1000 }]),
    ...given,
  });
}

const OVERLOAD = [withinBound(), longRun(), utilisationAtLeast(0.995), heldPartAtMost(0.01)];

export const STEADY: readonly Scenario[] = [
  steady("steady-0.5x", 0.5, {
    tags: ["ci"],
    verdicts: [withinBound(), utilisationAtLeast(0.999), callsPerAdmitAtMost(0.3)],
  }),
  steady("steady-0.95x", 0.95, { verdicts: [withinBound(), utilisationAtLeast(0.99)] }),
  steady("steady-1.05x", 1.05, { verdicts: [withinBound(), longRun(), utilisationAtLeast(0.99)] }),
  steady("steady-2x", 2, {
    tags: ["ci"],
    verdicts: [...OVERLOAD, jainAtLeast(0.995), callsPerAdmitAtMost(0.25)],
  }),
  steady("steady-10x", 10, { tags: ["ci"], verdicts: [...OVERLOAD, jainAtLeast(0.99)] }),
  scenarioOf(THEME, {
    name: "steady-2x-minute",
    question: "Do 20 pods at r = 1000/s hold the limit over a minute?",
    durationUs: 60 * SECOND,
    workload: traffic("2 r over all pods", [{ perSecond: 2000 }]),
    verdicts: OVERLOAD,
  }),
  scenarioOf(THEME, {
    name: "one-pod-2x",
    question: "What does a single pod lose to the store between its requests and its bucket?",
    pods: 1,
    workload: traffic("2 r at one pod", [{ perSecond: 2000 }]),
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.99)],
  }),
  scenarioOf(THEME, {
    name: "bursts-on-all",
    question: "Ten times the limit on all pods, one second in ten: how exact is each burst?",
    tags: ["ci"],
    workload: traffic("10 r for 1 s of 10 over all pods, else nothing", [
      { perSecond: onOff(10_000, 0, SECOND, 10 * SECOND), perSecondMax: 10_000 },
    ]),
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.99)],
  }),
  scenarioOf(THEME, {
    name: "aligned-ticks",
    question: "What if all requests of all pods come in the same millisecond, every 100 ms?",
    workload: salvos(
      "10 requests at each pod every 100 ms, at one instant",
      Array.from({ length: 299 }, (_, i) => ({
        atUs: (i + 1) * 100_000,
        count: 200,
        pod: (n: number) => n % 20,
      })),
    ),
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.97)],
  }),
  scenarioOf(THEME, {
    name: "ramp",
    question: "Load that grows from nothing to three times the limit: when does it begin to bite?",
    workload: traffic("0 to 3 r over 25 s", [
      { perSecond: ramp(0, 3000, 25 * SECOND), perSecondMax: 3000 },
    ]),
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.99)],
  }),
  scenarioOf(THEME, {
    name: "step-up",
    question: "Load steps from a tenth of the limit to five times: how soon is the fleet at r?",
    workload: traffic("0.1 r, from 10 s on 5 r", [
      { perSecond: (atUs) => (atUs < 10 * SECOND ? 100 : 5000), perSecondMax: 5000 },
    ]),
    marks: [{ atUs: 10 * SECOND, name: "step" }],
    verdicts: [withinBound(), longRun(), utilisationAtLeast(0.99), settlesWithin(2 * SECOND)],
  }),
  scenarioOf(THEME, {
    name: "silence-then-salvo",
    question: "An hour's rest, then as many requests as the burst on all pods within 100 ms?",
    durationUs: 15 * SECOND,
    workload: together(
      traffic("0.05 r", [{ perSecond: 50 }]),
      salvos("b requests over all pods in 100 ms", [
        {
          atUs: 8 * SECOND,
          count: 1000,
          spacingUs: 100,
          pod: (n) => n % 20,
          checks: ONE_CHECK,
        },
      ]),
    ),
    verdicts: [withinBound(), utilisationAtLeast(0.85)],
  }),
];
