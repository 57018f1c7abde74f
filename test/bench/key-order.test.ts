import { describe, expect, it } from "vitest";
import { type KeyAccess, keyOrder } from "../../bench/key-order.ts";
import { Prng } from "../../sim/prng.ts";

const KEYS = 1_000;
const CHECKS = 100_000;

function asked(access: KeyAccess): number[] {
  const prng = new Prng(7);
  const next = keyOrder(access, KEYS, () => prng.draw());
  return Array.from({ length: CHECKS }, next);
}

describe("the order of keys", () => {
  it("is even: every key, and none much more often than others", () => {
    const counts = new Map<number, number>();
    for (const key of asked("even")) counts.set(key, (counts.get(key) ?? 0) + 1);
    expect(counts.size).toBe(KEYS);
    expect(Math.max(...counts.keys())).toBe(KEYS - 1);
    expect(Math.max(...counts.values())).toBeLessThan(200);
  });

  it("is hot: nine of ten checks and a few more on a hundredth of the keys", () => {
    const hot = asked("hot").filter((key) => key < KEYS / 100).length / CHECKS;
    expect(hot).toBeGreaterThan(0.895);
    expect(hot).toBeLessThan(0.907);
  });

  it("is cold: no key twice, and none of those that the engine was filled with", () => {
    const keys = asked("cold");
    expect(new Set(keys).size).toBe(CHECKS);
    expect(Math.min(...keys)).toBe(KEYS);
  });
});
