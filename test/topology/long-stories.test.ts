/**
 * The long parts of cases whose short parts run with real processes beside this file: the same
 * engine and the same rules of the store, in virtual time.
 */
import { describe, expect, it } from "vitest";
import { KEY_FIELDS } from "../../src/store/embedded/key-state.ts";
import { numbersOf } from "../store/damage.ts";
import { limitOf, MS, SECOND, VirtualFleet } from "../support/virtual-fleet.ts";

const KEY = "k";

describe("O6 a primary is demoted behind one address", () => {
  it("the fleet admits 1100 to 1220 of 20/s in 60 s, and is out of the fallback within 5 s", () => {
    const limit = limitOf({ tokens: 20, burst: 20, mode: "auto" }, { margin: 0.5 });
    const fleet = new VirtualFleet({ limits: [limit], pods: 2 });
    const [start, turn] = [fleet.now, fleet.now + 10 * SECOND];
    for (const pod of fleet.pods) fleet.offer(pod, 15, start + 60 * SECOND);
    fleet.runUntil(turn - 20 * MS);
    const replica = fleet.store.snapshot();
    fleet.runUntil(turn);
    // As a replica every command is refused, until the pods have left it for the other server.
    fleet.storeState = "refusing";
    fleet.store.restore(replica);
    const isActive = (): boolean[] =>
      fleet.pods.map(({ engine }) => engine.figures(fleet.now).fallbackActive);
    fleet.runUntil(turn + 2 * SECOND);
    expect(isActive()).toEqual([true, true]);
    fleet.storeState = "up";
    fleet.runUntil(turn + 5 * SECOND);
    expect(isActive()).toEqual([false, false]);
    fleet.runUntil(start + 60 * SECOND);
    const admitted = fleet.admittedBetween(start, start + 60 * SECOND);
    expect(admitted).toBeGreaterThanOrEqual(1_100);
    expect(admitted).toBeLessThanOrEqual(1_220);
  });
});

describe("O9 what is stored under our names is not ours", () => {
  const modes = ["auto", "hybrid", "leased", "exact"] as const;

  const damages = ["text", "list", "nan"] as const;

  it.each(modes.flatMap((mode) => damages.map((damage) => [mode, damage] as const)))(
    "a limit of 5/s in %s mode whose key is %s: at most 107 of 20/s in 20 s, and it heals",
    (mode, damage) => {
      const limit = limitOf({ tokens: 5, burst: 5, mode });
      const fleet = new VirtualFleet({ limits: [limit], pods: 2 });
      const start = fleet.now;
      fleet.store.setKeyValue("api", KEY, numbersOf(damage, KEY_FIELDS));
      for (const pod of fleet.pods) fleet.offer(pod, 10, start + 20 * SECOND);
      // Five reconcile periods after the first check.
      fleet.runUntil(start + 600 * MS);
      const value = fleet.store.keyValue("api", KEY);
      expect(value?.length).toBeGreaterThanOrEqual(KEY_FIELDS);
      expect(value?.every((number) => number >= 0 && number < 2 ** 53)).toBe(true);
      const damaged = fleet.pods.map(({ engine }) => engine.counts(fleet.now).limits[0]?.tally);
      expect(damaged.reduce((sum, tally) => sum + (tally?.damaged ?? 0), 0)).toBe(1);
      fleet.runUntil(start + 20 * SECOND);
      const admitted = fleet.admittedBetween(start, start + 20 * SECOND);
      expect(admitted).toBeLessThanOrEqual(107);
      expect(admitted).toBeGreaterThan(80);
    },
  );

  it.each(modes)("and all of it vanishes after 10 s in %s mode: at most 107", (mode) => {
    const limit = limitOf({ tokens: 5, burst: 5, mode });
    const fleet = new VirtualFleet({ limits: [limit], pods: 2 });
    const start = fleet.now;
    for (const pod of fleet.pods) fleet.offer(pod, 10, start + 20 * SECOND);
    fleet.runUntil(start + 10 * SECOND);
    fleet.store.clear();
    fleet.runUntil(start + 20 * SECOND);
    const admitted = fleet.admittedBetween(start, start + 20 * SECOND);
    expect(admitted).toBeLessThanOrEqual(107);
    expect(admitted).toBeGreaterThan(80);
  });
});
