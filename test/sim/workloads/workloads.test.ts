/** Workloads offer what they say they offer, where they say, and the same again for one seed. */
import { describe, expect, test } from "vitest";
import { Prng } from "../../../sim/prng.ts";
import { limitOf, SECOND } from "../../../sim/scenarios/scenario-of.ts";
import { ANY_POD, type Arrival, type Workload } from "../../../sim/workload.ts";
import { bursts } from "../../../sim/workloads/bursts.ts";
import { drainThenHitAll } from "../../../sim/workloads/drain-then-hit-all.ts";
import { even } from "../../../sim/workloads/even.ts";
import { hotWithBackground } from "../../../sim/workloads/hot-with-background.ts";
import { loneHotPod } from "../../../sim/workloads/lone-hot-pod.ts";
import { manyLimits } from "../../../sim/workloads/many-limits.ts";
import { movingHotPod } from "../../../sim/workloads/moving-hot-pod.ts";
import { phaseAligned } from "../../../sim/workloads/phase-aligned.ts";
import { rampUp } from "../../../sim/workloads/ramp-up.ts";
import { boundedPareto, weightedCosts } from "../../../sim/workloads/weighted-costs.ts";
import { zipfOverKeys } from "../../../sim/workloads/zipf-over-keys.ts";
import { zipfOverPods } from "../../../sim/workloads/zipf-over-pods.ts";

const PODS = 20;
const LIMITS = [limitOf({ name: "a" }), limitOf({ name: "b" }), limitOf({ name: "c" })];

/** All arrivals of the first `seconds`. */
function arrivals(workload: Workload, seconds = 20, seed = 1): Arrival[] {
  const run = workload.start({
    random: new Prng(seed),
    limits: LIMITS,
    durationUs: seconds * SECOND,
    pods: PODS,
  });
  const list: Arrival[] = [];
  for (let next = run.next(); next !== undefined; next = run.next()) {
    if (next.atUs >= seconds * SECOND) break;
    list.push(next);
  }
  return list;
}

function perSecond(list: readonly Arrival[], fromS = 0, toS = 20): number {
  let tokens = 0;
  for (const { atUs, checks } of list) {
    if (atUs < fromS * SECOND || atUs >= toS * SECOND) continue;
    for (const { cost } of checks) tokens += cost;
  }
  return tokens / (toS - fromS);
}

function podsOf(list: readonly Arrival[]): Map<number, number> {
  const counts: Map<number, number> = new Map();
  for (const { pod } of list) counts.set(pod, (counts.get(pod) ?? 0) + 1);
  return counts;
}

const RATE = { perSecond: 2000 };

const ALL: readonly (readonly [string, Workload])[] = [
  ["even", even(RATE)],
  ["even spacing", even({ ...RATE, spacing: "even" })],
  ["costs of 5", even({ ...RATE, cost: 5 })],
  ["lone hot pod", loneHotPod(RATE)],
  ["moving hot pod", movingHotPod({ ...RATE, pods: PODS, everyUs: SECOND })],
  ["Zipf over pods", zipfOverPods({ ...RATE, pods: PODS })],
  ["Zipf over keys", zipfOverKeys({ ...RATE, keys: 1000 })],
  ["phase-aligned", phaseAligned({ ...RATE, everyUs: 100_000 })],
  ["heavy-tailed costs", weightedCosts({ perSecond: 200_000, costMin: 10, costMax: 4_000 })],
];

describe.each(ALL)("%s", (name, workload) => {
  const offered = name === "heavy-tailed costs" ? 200_000 : 2000;

  test("offers what it says, in order of time", () => {
    const list = arrivals(workload);
    // Ten standard deviations of the widest of them.
    expect(Math.abs(perSecond(list) / offered - 1)).toBeLessThan(0.06);
    expect(list.every(({ atUs }, i) => atUs >= (list[i - 1]?.atUs ?? 0))).toBe(true);
    expect(list.every(({ atUs }) => Number.isInteger(atUs))).toBe(true);
  });

  test("is the same again for one seed", () => {
    expect(arrivals(workload, 2, 7)).toEqual(arrivals(workload, 2, 7));
  });
});

test("evenly spaced requests are equally far apart", () => {
  const list = arrivals(even({ perSecond: 1000, spacing: "even" }), 1);
  expect(list.slice(1).every(({ atUs }, i) => atUs - (list[i]?.atUs ?? 0) === 1_000)).toBe(true);
});

test("Poisson gaps vary as much as their mean", () => {
  const list = arrivals(even({ perSecond: 1000 }), 20);
  const gaps = list.slice(1).map(({ atUs }, i) => atUs - (list[i]?.atUs ?? 0));
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  const square = gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length;
  expect(Math.sqrt(square) / mean).toBeGreaterThan(0.95);
  expect(Math.sqrt(square) / mean).toBeLessThan(1.05);
});

describe("where requests go", () => {
  test("all to the lone hot pod, to the balancer's choice when even", () => {
    expect([...podsOf(arrivals(loneHotPod(RATE))).keys()]).toEqual([0]);
    expect([...podsOf(arrivals(even(RATE))).keys()]).toEqual([ANY_POD]);
  });

  test("the background reaches every other pod alike", () => {
    const list = arrivals(hotWithBackground({ ...RATE, pods: PODS, background: 50 }));
    const counts = podsOf(list);
    expect(counts.get(0)).toBeGreaterThan(38_000);
    for (let pod = 1; pod < PODS; pod += 1) {
      expect(counts.get(pod)).toBeGreaterThan(800);
      expect(counts.get(pod)).toBeLessThan(1_200);
    }
    expect(list.every(({ pod, client }) => client === (pod === 0 ? 1 : 2))).toBe(true);
  });

  test("the hot pod moves on time and comes round", () => {
    const list = arrivals(movingHotPod({ ...RATE, pods: 3, everyUs: 2 * SECOND }));
    const rightPod = ({ atUs, pod }: Arrival): boolean => pod === Math.floor(atUs / 2e6) % 3;
    expect(list.every(rightPod)).toBe(true);
  });

  test("Zipf: rank 1 gets twice as much as rank 2 and ten times as much as rank 10", () => {
    const counts = podsOf(arrivals(zipfOverPods({ perSecond: 20_000, pods: PODS })));
    const first = counts.get(0) ?? 0;
    expect(first / (counts.get(1) ?? 0)).toBeCloseTo(2, 0);
    expect(Math.abs(first / (counts.get(9) ?? 0) - 10)).toBeLessThan(1);
  });
});

test("bursts come at the beginning of each period and nothing between", () => {
  const list = arrivals(bursts({ perSecond: 5000, onUs: SECOND, everyUs: 5 * SECOND }));
  expect(list.every(({ atUs }) => atUs % (5 * SECOND) < SECOND)).toBe(true);
  expect(Math.abs(perSecond(list, 5, 6) / 5000 - 1)).toBeLessThan(0.1);
});

test("a ramp rises in a straight line", () => {
  const list = arrivals(rampUp({ fromPerSecond: 0, perSecond: 2000, overUs: 20 * SECOND }));
  expect(perSecond(list, 4, 6) / 500).toBeCloseTo(1, 0);
  expect(perSecond(list, 14, 16) / 1500).toBeCloseTo(1, 0);
});

test("aligned pods all ask at one instant, fractions of a tick carry over", () => {
  const list = arrivals(phaseAligned({ perSecond: 15, everyUs: 100_000 }), 2);
  expect(list).toHaveLength(30);
  expect(list.every(({ atUs }) => atUs % 100_000 === 0)).toBe(true);
});

test("the attacker drains one pod and then hits all others at one instant", () => {
  const given = { drain: 3000, drainUs: 500_000, blow: 20, pauseUs: 10_000, everyUs: 5 * SECOND };
  const list = arrivals(drainThenHitAll(given), 10);
  expect(list).toHaveLength(2 * (3000 + 19 * 20));
  const blow = list.filter(({ atUs }) => atUs === 5_510_000);
  expect(podsOf(blow).size).toBe(19);
  expect(podsOf(blow).get(0)).toBeUndefined();
});

test("the heavy tail has its mean and its bounds", () => {
  const { at, mean } = boundedPareto(10, 4_000, 1.2);
  expect(at(0)).toBeCloseTo(10, 9);
  expect(at(1)).toBeCloseTo(4_000, 6);
  let sum = 0;
  for (let i = 0; i < 100_000; i += 1) sum += at((i + 0.5) / 100_000);
  expect(sum / 100_000 / mean).toBeCloseTo(1, 2);
  expect(() => boundedPareto(10, 5, 1.2)).toThrow(RangeError);
});

test("each kind of request asks for its own set of limits", () => {
  const list = arrivals(manyLimits({ requestsPerSecond: 500, kinds: [[0, 1], [2]] }));
  const sets = new Set(list.map(({ checks }) => checks.map(({ limit }) => limit).join("+")));
  expect([...sets].sort()).toEqual(["0+1", "2"]);
});
