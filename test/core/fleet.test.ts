/**
 * What a fleet of engines admits together, told as stories in virtual time around one embedded
 * store. Bounds are those of the cases; the reconcile interval is 100 ms where a case leaves it
 * open.
 */
import { describe, expect, it } from "vitest";
import type { Decision } from "../../src/core/decision.ts";
import {
  limitOf,
  MS,
  SECOND,
  VirtualFleet,
  type VirtualFleetOptions,
} from "../support/virtual-fleet.ts";

/** Builds a fleet and offers every pod the same load from now on. */
function loadedFleet(options: VirtualFleetOptions, perPod: number, seconds: number): VirtualFleet {
  const fleet = new VirtualFleet(options);
  for (const pod of fleet.pods) fleet.offer(pod, perPod, fleet.now + seconds * SECOND);
  return fleet;
}

const podsSeen = (fleet: VirtualFleet): number[] =>
  fleet.pods.filter((pod) => pod.isAlive).map((pod) => pod.engine.figures(fleet.now).pods);

describe("a fleet holds one limit", () => {
  const limit = limitOf({ tokens: 1000, burst: 1000 });

  it.each([
    { pods: 4, perPod: 500 },
    { pods: 20, perPod: 100 },
    { pods: 20, perPod: 500 },
  ])("of 1000/s with $pods pods offered $perPod/s each", ({ pods, perPod }) => {
    const fleet = loadedFleet({ limits: [limit], pods }, perPod, 20);
    fleet.runUntil(fleet.now + 20 * SECOND);
    expect(fleet.excess(1000, 1000)).toBeLessThanOrEqual(100);
    expect(fleet.admittedBetween(0, fleet.now)).toBeGreaterThanOrEqual(0.995 * 21_000);
  });

  it("gives nearly all of it to a lone hot pod", () => {
    const fleet = new VirtualFleet({ limits: [limit], pods: 4 });
    fleet.offer(fleet.pods[0] as VirtualFleet["pods"][0], 2000, fleet.now + 20 * SECOND);
    fleet.runUntil(fleet.now + 20 * SECOND);
    expect(fleet.admittedBetween(0, fleet.now)).toBeGreaterThanOrEqual(0.99 * 21_000);
    expect(fleet.excess(1000, 1000)).toBeLessThanOrEqual(100);
  });

  it("when pods join in numbers and most are killed", () => {
    const fleet = loadedFleet({ limits: [limit], pods: 4 }, 500, 30);
    fleet.runUntil(10 * SECOND);
    for (let i = 0; i < 8; i += 1) fleet.offer(fleet.join(), 500, 30 * SECOND);
    fleet.runUntil(20 * SECOND);
    for (const pod of fleet.pods.slice(0, 6)) pod.isAlive = false;
    fleet.runUntil(30 * SECOND);
    expect(fleet.excess(1000, 1000)).toBeLessThanOrEqual(100);
    expect(fleet.admittedBetween(26 * SECOND, 30 * SECOND)).toBeGreaterThanOrEqual(3_800);
  });
});

describe("O2 very high rates", () => {
  it("hold for 2000/s with a burst of 20 over four pods", () => {
    const limit = limitOf({ tokens: 2000, burst: 20 });
    const fleet = loadedFleet({ limits: [limit], pods: 4 }, 1000, 10);
    fleet.runUntil(fleet.now + 10 * SECOND);
    expect(fleet.admittedBetween(0, fleet.now)).toBeLessThanOrEqual(20_020);
    expect(fleet.admittedBetween(0, fleet.now)).toBeGreaterThanOrEqual(19_800);
  });

  it("answer whole numbers from 0 to the burst at a million a second", () => {
    const limit = limitOf({ tokens: 1_000_000, burst: 1_000_000 });
    const fleet = new VirtualFleet({ limits: [limit], pods: 3 });
    const pod = fleet.pods[0] as VirtualFleet["pods"][0];
    const seen: Decision[] = [];
    for (let i = 0; i < 10_000; i += 1) {
      fleet.at(fleet.now + 100 * i, () =>
        fleet.check(pod, [{ limit, key: "k", cost: 1 }], ([decision]) =>
          seen.push(decision as Decision),
        ),
      );
    }
    fleet.runUntil(fleet.now + 2 * SECOND);
    expect(seen).toHaveLength(10_000);
    expect(seen.every((decision) => decision.allowed)).toBe(true);
    for (const { remaining } of seen) {
      expect(Number.isInteger(remaining)).toBe(true);
      expect(remaining).toBeGreaterThanOrEqual(0);
      expect(remaining).toBeLessThanOrEqual(1_000_000);
    }
  });
});

describe("O5 pods whose clocks disagree", () => {
  it("share a limit, because only the store's clock is shared", () => {
    const limit = limitOf({ tokens: 60, burst: 30, intervalUs: SECOND });
    const fleet = loadedFleet(
      { limits: [limit], pods: 3, membershipTimeoutUs: 3 * SECOND },
      40,
      60,
    );
    const counts = new Set<number>();
    for (let second = 5; second < 60; second += 1) {
      fleet.at(second * SECOND, () => {
        for (const seen of podsSeen(fleet)) counts.add(seen);
      });
    }
    // The store's wall clock is moved both ways; the pods have none that counts.
    fleet.at(20 * SECOND, () => {
      fleet.storeClockOffsetUs += 5 * SECOND;
    });
    fleet.at(40 * SECOND, () => {
      fleet.storeClockOffsetUs -= 10 * SECOND;
    });
    fleet.runUntil(fleet.now + 60 * SECOND);
    const total = fleet.admittedBetween(0, fleet.now);
    expect(total).toBeLessThanOrEqual(3_630 + 30);
    expect(total).toBeGreaterThanOrEqual(3_400);
    for (const pod of fleet.pods) {
      expect(pod.admitted).toBeGreaterThanOrEqual(total / 3 - 40);
      expect(pod.admitted).toBeLessThanOrEqual(total / 3 + 40);
    }
    expect([...counts]).toEqual([3]);
    const stored = fleet.store.keyValue("api", "k") as Float64Array;
    expect([...stored].every((number) => number >= 0)).toBe(true);
  });
});

describe("O7 a store that is away", () => {
  it.each(["refusing", "hanging"] as const)("(%s) leaves half of the limit", (state) => {
    const limit = limitOf({ tokens: 100, burst: 100 }, { margin: 0.5 });
    const fleet = loadedFleet({ limits: [limit], pods: 4 }, 200, 180);
    fleet.runUntil(10 * SECOND);
    fleet.storeState = state;
    fleet.runUntil(13 * SECOND);
    for (const pod of fleet.pods) {
      expect(pod.engine.figures(fleet.now).fallbackActive).toBe(true);
    }
    fleet.runUntil(130 * SECOND);
    fleet.storeState = "up";
    const isolated = fleet.admittedBetween(15 * SECOND, 130 * SECOND);
    expect(isolated).toBeGreaterThanOrEqual(5_460);
    expect(isolated).toBeLessThanOrEqual(5_800);
    fleet.runUntil(135 * SECOND);
    for (const pod of fleet.pods) {
      expect(pod.engine.figures(fleet.now).fallbackActive).toBe(false);
    }
    fleet.runUntil(165 * SECOND);
    const after = fleet.admittedBetween(135 * SECOND, 165 * SECOND) / 30;
    expect(after).toBeGreaterThanOrEqual(95);
    expect(after).toBeLessThanOrEqual(101);
    expect(fleet.excess(100, 100)).toBeLessThanOrEqual(40);
  });

  it("is no reason to hold a check, and closed limits say so", () => {
    const limit = limitOf({ tokens: 100, burst: 100 }, { policy: "closed" });
    const open = limitOf({ name: "open", tokens: 1, burst: 1 }, { policy: "open" });
    const fleet = new VirtualFleet({ limits: [limit, open], pods: 1 });
    fleet.storeState = "refusing";
    fleet.runUntil(5 * SECOND);
    const pod = fleet.pods[0] as VirtualFleet["pods"][0];
    const ask = (what: typeof limit): Decision => {
      const outcome = pod.engine.decide(fleet.now, [{ limit: what, key: "k", cost: 1 }]);
      if ("held" in outcome) throw new Error("held");
      return outcome[0] as Decision;
    };
    expect(ask(limit)).toMatchObject({
      allowed: false,
      reason: "store_unavailable",
      source: "fallback",
      degraded: true,
    });
    for (let i = 0; i < 5; i += 1) {
      expect(ask(open)).toMatchObject({ allowed: true, source: "fallback" });
    }
  });
});

describe("O10 new pods", () => {
  it("do not arrive with full buckets, and the rest take over when they leave", () => {
    const limit = limitOf({ tokens: 100, burst: 100 });
    const fleet = loadedFleet({ limits: [limit], pods: 10 }, 40, 130);
    fleet.runUntil(30 * SECOND);
    const joined = Array.from({ length: 5 }, () => fleet.join());
    for (const pod of joined) fleet.offer(pod, 40, 130 * SECOND);
    fleet.runUntil(33 * SECOND);
    expect(podsSeen(fleet)).toEqual(Array(15).fill(15));
    fleet.runUntil(90 * SECOND);
    expect(fleet.admittedBetween(30 * SECOND, 40 * SECOND)).toBeLessThanOrEqual(1_100);
    expect(fleet.admittedBetween(30 * SECOND, 90 * SECOND)).toBeLessThanOrEqual(6_100);
    const share = (pod: number): number =>
      fleet.admissions.filter((it) => it.pod === pod && it.at >= 40 * SECOND && it.at < 90 * SECOND)
        .length / 50;
    for (const pod of fleet.pods) {
      expect(share(pod.index)).toBeGreaterThan(6.67 * 0.9);
      expect(share(pod.index)).toBeLessThan(6.67 * 1.1);
    }
    for (const pod of joined) fleet.leave(pod);
    fleet.runUntil(130 * SECOND);
    const after = fleet.admittedBetween(92 * SECOND, 130 * SECOND) / 38;
    expect(after).toBeGreaterThanOrEqual(95);
    expect(after).toBeLessThanOrEqual(101);
  });
});

describe("O11 membership that is lost", () => {
  it("does not hand the whole limit to anybody", () => {
    const limit = limitOf({ tokens: 80, burst: 80 });
    const fleet = loadedFleet({ limits: [limit], pods: 8 }, 20, 30);
    fleet.runUntil(20 * SECOND);
    for (const pod of fleet.pods) fleet.store.leave(pod.recordId);
    const seen = new Set<number>();
    for (let tenth = 0; tenth < 100; tenth += 1) {
      fleet.at(fleet.now + tenth * 100 * MS, () => {
        for (const count of podsSeen(fleet)) seen.add(count);
      });
    }
    fleet.runUntil(30 * SECOND);
    expect(fleet.admittedBetween(20 * SECOND, 30 * SECOND)).toBeLessThanOrEqual(840);
    expect([...seen]).toEqual([8]);
  });

  it("leaves a pod that is alone with all of the limit", () => {
    const limit = limitOf({ tokens: 80, burst: 80 });
    const fleet = loadedFleet({ limits: [limit], pods: 1 }, 160, 20);
    fleet.runUntil(20 * SECOND);
    expect(podsSeen(fleet)).toEqual([1]);
    const rate = fleet.admittedBetween(5 * SECOND, 20 * SECOND) / 15;
    expect(rate).toBeGreaterThanOrEqual(79);
    expect(rate).toBeLessThanOrEqual(81);
  });
});

describe("O12 uneven load", () => {
  it("gets what idle pods leave over", () => {
    const limit = limitOf({ tokens: 80, burst: 80 });
    const fleet = new VirtualFleet({ limits: [limit], pods: 8 });
    for (const pod of fleet.pods) fleet.offer(pod, pod.index < 6 ? 2 : 60, 120 * SECOND);
    fleet.runUntil(120 * SECOND);
    expect(fleet.admittedBetween(0, 120 * SECOND)).toBeLessThanOrEqual(9_680 + 2);
    const rate = fleet.admittedBetween(10 * SECOND, 120 * SECOND) / 110;
    expect(rate).toBeGreaterThanOrEqual(0.9 * 80);
  });
});

describe("O13 consumption in the store", () => {
  it.each([1, 3])("is what %i pods admitted, exactly", (pods) => {
    const limit = limitOf({ tokens: 1, spanUs: 86_400 * SECOND, burst: 1000 });
    const fleet = new VirtualFleet({ limits: [limit], pods });
    for (let i = 0; i < 100; i += 1) {
      const pod = fleet.pods[i % pods] as VirtualFleet["pods"][0];
      fleet.at(fleet.now + i * 1_100 * MS, () => fleet.check(pod, [{ limit, key: "k", cost: 1 }]));
    }
    fleet.runUntil(115 * SECOND);
    expect(fleet.admissions).toHaveLength(100);
    const [, period, , deficit] = fleet.store.keyValue("api", "k") as Float64Array;
    expect(Math.ceil((deficit as number) / (period as number))).toBe(100);
  });

  it("does not grow by denied checks", () => {
    const limit = limitOf({ tokens: 1, spanUs: 86_400 * SECOND, burst: 50 });
    const fleet = new VirtualFleet({ limits: [limit], pods: 3 });
    for (let i = 0; i < 400; i += 1) {
      const pod = fleet.pods[i % 3] as VirtualFleet["pods"][0];
      fleet.at(fleet.now + i * 20 * MS, () => fleet.check(pod, [{ limit, key: "k", cost: 1 }]));
    }
    fleet.runUntil(15 * SECOND);
    expect(fleet.admissions).toHaveLength(50);
    const [, period, , deficit] = fleet.store.keyValue("api", "k") as Float64Array;
    expect(Math.ceil((deficit as number) / (period as number))).toBe(50);
  });
});

describe("O23 a store that never was there", () => {
  it("leaves a pod its fallback part from the first check on", () => {
    const limit = limitOf({ tokens: 40, burst: 40 }, { margin: 0.25, maxPods: 1 });
    const fleet = new VirtualFleet({ limits: [limit], pods: 0 });
    fleet.storeState = "refusing";
    const pod = fleet.join();
    fleet.runUntil(fleet.now + 10 * MS);
    fleet.offer(pod, 100, fleet.now + 60 * SECOND);
    fleet.runUntil(fleet.now + 60 * SECOND);
    expect(pod.admitted).toBeLessThanOrEqual(610);
    expect(pod.admitted).toBeGreaterThanOrEqual(590);
    fleet.storeState = "up";
    fleet.runUntil(fleet.now + 5 * SECOND);
    expect(pod.engine.figures(fleet.now)).toMatchObject({ fallbackActive: false, pods: 1 });
  });
});
