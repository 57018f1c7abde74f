/**
 * What each pod of a fleet gets, in the very numbers of the cases: virtual time, a reconcile
 * interval of one second where they say so.
 */
import { describe, expect, it } from "vitest";
import { limitOf, MS, SECOND, VirtualFleet, type VirtualPod } from "../support/virtual-fleet.ts";

/** Tokens per second that one pod admitted in a span of seconds. */
function rateOf(fleet: VirtualFleet, { index }: VirtualPod, from: number, to: number): number {
  const within = fleet.admissions.filter(
    ({ pod, at }) => pod === index && at >= from * SECOND && at < to * SECOND,
  );
  return within.length / (to - from);
}

describe("O5 three pods that load a limit evenly", () => {
  it("get a third each, whatever the time of day is with them or with the store", () => {
    const limit = limitOf({ tokens: 60, burst: 30, intervalUs: SECOND });
    const fleet = new VirtualFleet({
      limits: [limit],
      pods: 3,
      membershipTimeoutUs: 3 * SECOND,
    });
    // Every pod counts three from the first check on.
    fleet.runUntil(2 * SECOND);
    const start = fleet.now;
    for (const pod of fleet.pods) fleet.offer(pod, 40, start + 60 * SECOND);
    const counts = new Set<number>();
    for (let second = 1; second < 60; second += 1) {
      fleet.at(start + second * SECOND, () => {
        for (const { engine } of fleet.pods) counts.add(engine.figures(fleet.now).pods);
      });
    }
    fleet.runUntil(start + 60 * SECOND);
    const total = fleet.admittedBetween(start, fleet.now);
    expect(total).toBeGreaterThanOrEqual(3_564);
    expect(total).toBeLessThanOrEqual(3_630);
    for (const { admitted } of fleet.pods) {
      expect(admitted).toBeGreaterThanOrEqual(1_188);
      // A third of the rate is 1,200; the burst of 30 is for whoever asks first.
      expect(admitted).toBeLessThanOrEqual(1_212 + 10);
    }
    expect([...counts]).toEqual([3]);
  });
});

describe("O10 five pods that join ten, and leave again", () => {
  it("get their part within 3 s, and within 2 s it is with the others again", () => {
    const limit = limitOf({ tokens: 100, burst: 100, intervalUs: SECOND });
    const fleet = new VirtualFleet({ limits: [limit], pods: 10 });
    const stayed = [...fleet.pods];
    for (const pod of stayed) fleet.offer(pod, 40, 130 * SECOND);
    fleet.runUntil(30 * SECOND);
    const joined = Array.from({ length: 5 }, () => fleet.join());
    for (const pod of joined) fleet.offer(pod, 40, 130 * SECOND);
    fleet.runUntil(90 * SECOND);
    for (const pod of fleet.pods) {
      expect(rateOf(fleet, pod, 33, 90)).toBeGreaterThan(6.67 * 0.95);
      expect(rateOf(fleet, pod, 33, 90)).toBeLessThan(6.67 * 1.05);
    }
    for (const pod of joined) fleet.leave(pod);
    fleet.runUntil(130 * SECOND);
    expect(fleet.admittedBetween(92 * SECOND, 130 * SECOND) / 38).toBeGreaterThanOrEqual(95);
    for (const pod of stayed) {
      expect(rateOf(fleet, pod, 92, 130)).toBeGreaterThan(10 * 0.95);
      expect(rateOf(fleet, pod, 92, 130)).toBeLessThan(10 * 1.05);
    }
  });
});

describe("O11 (d) a limit smaller than the fleet", () => {
  const limit = limitOf({ tokens: 1, spanUs: 30 * SECOND, burst: 1, mode: "auto" });

  it.each([
    { what: "that take turns for three seconds", gapUs: 100 * MS, pods: 2 },
    { what: "at once", gapUs: 0, pods: 2 },
    { what: "at once", gapUs: 0, pods: 5 },
  ])("admits one of thirty checks of $pods pods $what", ({ gapUs, pods }) => {
    const fleet = new VirtualFleet({ limits: [limit], pods });
    const start = fleet.now;
    for (let i = 0; i < 30; i += 1) {
      const pod = fleet.pods[i % pods] as VirtualPod;
      fleet.at(start + i * gapUs, () => fleet.check(pod, [{ limit, key: "k", cost: 1 }]));
    }
    fleet.runUntil(start + 4 * SECOND);
    expect(fleet.admissions).toHaveLength(1);
    // And it is not stuck: another is there when the first is due again.
    fleet.runUntil(start + 31 * SECOND);
    for (const pod of fleet.pods) fleet.check(pod, [{ limit, key: "k", cost: 1 }]);
    fleet.runUntil(start + 33 * SECOND);
    expect(fleet.admissions).toHaveLength(2);
  });
});
