import { describe, expect, it } from "vitest";
import type { Limit } from "../../src/core/limit.ts";
import { limitOf, SECOND, VirtualFleet } from "../support/virtual-fleet.ts";

const PODS = 3;

/** Tokens of the limit's keys that replies found lost, over all pods. */
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
