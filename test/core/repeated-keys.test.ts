import { describe, expect, it } from "vitest";
import { ENTRY, ENTRY_FIELDS } from "../../src/core/exchange.ts";
import { limitOf, SECOND, VirtualFleet } from "../support/virtual-fleet.ts";

const LIMIT = limitOf({ tokens: 1, spanUs: 86_400 * SECOND, burst: 1_000 });

/** Notes keys that come twice in a batch, and what each batch tells to be consumed. */
function watched(fleet: VirtualFleet): { repeated: string[]; consumed: () => number } {
  const repeated: string[] = [];
  let consumed = 0;
  const reconcile = fleet.store.reconcile.bind(fleet.store);
  fleet.store.reconcile = (rawUs, podRecordId, batch) => {
    repeated.push(...batch.keys.filter((key, i) => batch.keys.indexOf(key) !== i));
    for (let i = 0; i < batch.keys.length; i += 1) {
      consumed += batch.entries[i * ENTRY_FIELDS + ENTRY.consumed] ?? 0;
    }
    return reconcile(rawUs, podRecordId, batch);
  };
  return { repeated, consumed: () => consumed };
}

/** Tokens that the store lacks over the keys. */
function missing(fleet: VirtualFleet, keys: readonly string[]): number {
  const lacks = keys.map((key) => {
    const [, period = 1, , deficit = 0] = fleet.store.keyValue(LIMIT.name, key) ?? [];
    return deficit / period;
  });
  return Math.round(lacks.reduce((sum, lack) => sum + lack, 0));
}

describe("a batch names no key twice, for a script reads all keys before it writes one", () => {
  it("after a failover, when what was forgotten is told again of keys in use", () => {
    const fleet = new VirtualFleet({ limits: [LIMIT], pods: 2 });
    const { repeated } = watched(fleet);
    for (const pod of fleet.pods) fleet.offer(pod, 100, 6 * SECOND);
    fleet.runUntil(3 * SECOND);
    const replica = fleet.store.snapshot();
    fleet.runUntil(3.5 * SECOND);
    fleet.store.restore(replica);
    fleet.runUntil(20 * SECOND);
    expect(repeated).toEqual([]);
    expect(missing(fleet, ["k"])).toBe(fleet.admittedBetween(0, fleet.now));
  });

  it("when rows make room for others and come back in the same interval", () => {
    const fleet = new VirtualFleet({ limits: [LIMIT], pods: 2, keysMax: 3 });
    const { repeated, consumed } = watched(fleet);
    const keys = ["a", "b", "c", "d", "e"];
    for (const pod of fleet.pods) {
      for (const key of keys) fleet.offer(pod, 40, 5 * SECOND, key);
    }
    fleet.runUntil(20 * SECOND);
    expect(repeated).toEqual([]);
    expect(missing(fleet, keys)).toBe(fleet.admittedBetween(0, fleet.now));
    expect(consumed()).toBe(fleet.admittedBetween(0, fleet.now));
  });
});
