import { describe, expect, it } from "vitest";
import type { Limit } from "../../src/core/limit.ts";
import { limitOf, SECOND, VirtualFleet } from "../support/virtual-fleet.ts";

const PODS = 3;

/** Keys of the limit that replies found lost, over all pods. */
function lostKeys(fleet: VirtualFleet): number {
  const tallies = fleet.pods.map(({ engine }) => engine.counts(fleet.now).limits[0]?.tally);
  return tallies.reduce((sum, tally) => sum + (tally?.lostKeys ?? 0), 0);
}

/** A fleet that has drained a key of the limit, with ten times its rate still coming. */
function drained(limit: Limit, until: number): VirtualFleet {
  const fleet = new VirtualFleet({ limits: [limit], pods: PODS });
  fleet.runUntil(2 * SECOND);
  for (const pod of fleet.pods) fleet.offer(pod, 20, until);
  fleet.runUntil(10 * SECOND);
  return fleet;
}

describe("O9 a single key that Redis evicted or somebody deleted", () => {
  // Burst 30, and a token every two seconds: 20 that are admitted at once are no refill.
  const terms = { tokens: 1, spanUs: 2 * SECOND, burst: 30 };
  const cases = [
    // A tenth of the burst, and what the rule of hybrid mode adds between two reconciles.
    { mode: "hybrid", most: 3 + 1 + PODS },
    { mode: "leased", most: 1 },
    { mode: "exact", most: 1 },
  ] as const;

  it.each(cases)("is no free burst in $mode mode", ({ mode, most }) => {
    const fleet = drained(limitOf({ ...terms, mode }), 60 * SECOND);
    expect(fleet.admittedBetween(0, fleet.now)).toBeGreaterThanOrEqual(30);
    expect(lostKeys(fleet)).toBe(0);
    fleet.store.dropKey("api", "k");
    fleet.runUntil(40 * SECOND);
    const refilled = 30 / 2;
    const admitted = fleet.admittedBetween(10 * SECOND, 40 * SECOND);
    expect(admitted).toBeLessThanOrEqual(most + refilled);
    // It goes on at the rate, less what a hold of a second and a ticket of two cost.
    expect(admitted).toBeGreaterThanOrEqual(refilled - 3);
    expect(lostKeys(fleet)).toBe(1);
  });
});

describe("what is no loss of a key", () => {
  const slow = { tokens: 1, spanUs: 2 * SECOND, burst: 30 };
  const fast = { tokens: 5, burst: 10 };

  it.each(["hybrid", "leased", "exact"] as const)(
    "is a limit that a reload has changed and changed back, in %s mode",
    (mode) => {
      const before = limitOf({ ...slow, mode });
      const after = limitOf({ ...fast, mode });
      const fleet = drained(before, 11 * SECOND);
      // For a while, two versions at once.
      for (const [i, pod] of fleet.pods.entries()) {
        fleet.at(fleet.now + i * SECOND, () => pod.engine.configChanged(fleet.now, [after]));
      }
      fleet.runUntil(15 * SECOND);
      for (const pod of fleet.pods) fleet.offer(pod, 2, 17 * SECOND, "k", after);
      fleet.runUntil(18 * SECOND);
      // Full by the new numbers, and expired: by the old ones it would be drained.
      fleet.runUntil(40 * SECOND);
      for (const pod of fleet.pods) pod.engine.configChanged(fleet.now, [before]);
      for (const pod of fleet.pods) fleet.offer(pod, 2, 45 * SECOND, "k", before);
      fleet.runUntil(50 * SECOND);
      expect(lostKeys(fleet)).toBe(0);
      expect(fleet.admittedBetween(40 * SECOND, 45 * SECOND)).toBeGreaterThanOrEqual(28);
    },
  );

  it("is a refund that another pod has told of", () => {
    const limit = limitOf({ ...slow, mode: "exact" });
    const fleet = drained(limit, 30 * SECOND);
    const check = { limit, key: "k", cost: -30 };
    fleet.pods[0]?.engine.report(fleet.now, check);
    fleet.runUntil(30 * SECOND);
    expect(lostKeys(fleet)).toBe(0);
    expect(fleet.admittedBetween(10 * SECOND, 30 * SECOND)).toBeGreaterThanOrEqual(30);
  });

  it("is a failover to a replica that has never heard of the key", () => {
    const limit = limitOf({ tokens: 10, burst: 100 });
    const fleet = new VirtualFleet({ limits: [limit], pods: PODS });
    // Its lane is in use, so that the store knows which server it is on.
    for (const pod of fleet.pods) fleet.check(pod, [{ limit, key: "other", cost: 1 }]);
    fleet.runUntil(3 * SECOND);
    const replica = fleet.store.snapshot();
    for (const pod of fleet.pods) fleet.offer(pod, 30, 5 * SECOND);
    fleet.runUntil(4 * SECOND);
    fleet.store.restore(replica);
    fleet.runUntil(5 * SECOND);
    expect(lostKeys(fleet)).toBe(0);
    // What was lost is reported again, and charged once.
    expect(fleet.admittedBetween(0, 5 * SECOND)).toBeGreaterThanOrEqual(100);
    expect(fleet.excess(10, 100)).toBeLessThanOrEqual(40);
  });
});
