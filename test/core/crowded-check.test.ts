/** A check over several limits in a table that has no room for all of its keys. */
import { describe, expect, it } from "vitest";
import type { Check } from "../../src/core/decision.ts";
import { SoleEngine } from "../support/sole-engine.ts";
import { limitOf, SECOND, VirtualFleet } from "../support/virtual-fleet.ts";

const HOUR = 3600 * SECOND;
const limits = ["one", "two", "three"].map((name) =>
  limitOf({ name, tokens: 1, spanUs: HOUR, burst: 10, mode: "hybrid" }),
);
const over = (count: number, cost = 1): Check[] =>
  limits.slice(0, count).map((limit) => ({ limit, key: "k", cost }));

describe("a table with room for fewer keys than a check has limits", () => {
  it.each([1, 2])("of %d denies it and charges none of its limits", (keysMax) => {
    const engine = new SoleEngine(limits, keysMax);
    engine.checkAll(over(1, 4));
    for (let i = 0; i < 5; i += 1) {
      const decisions = engine.checkAll(over(3));
      expect(decisions.every(({ allowed }) => allowed)).toBe(false);
    }
    // The key that was charged before is still the one that lacks something.
    expect(engine.checkAll(over(1, 0))[0]?.remaining).toBe(6);
    expect(engine.checkAll(over(2).slice(1))[0]?.remaining).toBe(9);
  });

  it("of three decides it as ever", () => {
    const engine = new SoleEngine(limits, 3);
    for (let i = 0; i < 10; i += 1) engine.checkAll(over(3));
    expect(engine.checkAll(over(3)).map(({ allowed }) => allowed)).toEqual([false, false, false]);
  });

  it("charges no other key when a store is there either", () => {
    const fleet = new VirtualFleet({ limits, pods: 1, keysMax: 2 });
    const [pod] = fleet.pods;
    if (pod === undefined) throw new Error("there is a pod");
    for (let i = 0; i < 20; i += 1) {
      fleet.check(pod, over(3));
      fleet.runUntil(fleet.now + SECOND);
    }
    expect(pod.admitted).toBe(0);
    for (const { name } of limits) {
      const stored = fleet.store.keyValue(name, "k");
      expect([name, stored?.[3] ?? 0]).toEqual([name, 0]);
    }
  });
});
