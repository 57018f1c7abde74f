/** What must hold of limits that are decided in the store, whatever the pods do. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Prng } from "../../sim/prng.ts";
import type { Limit } from "../../src/core/limit.ts";
import { EmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { type Admission, Adversaries, excessOf } from "./adversary.ts";
import { callOf, leases, type TakeFields, type Taken, takenOf, takes } from "./asking.ts";
import { GiveBacks } from "./give-backs.ts";
import { limitOf, MS, SECOND } from "./pod.ts";

const START = 1_000 * SECOND;
const KEY = "k";
const seeds = fc.integer({ min: 0, max: 2 ** 31 });

/** Rate and burst from a lone token to thousands, b/r from 0.1 to 60 s. */
const LIMITS: readonly Limit[] = [
  limitOf({ name: "one", tokens: 1, burst: 1 }),
  limitOf({ name: "slow", tokens: 5, spanUs: 60 * SECOND, burst: 5 }),
  limitOf({ name: "even", tokens: 100, burst: 100 }),
  limitOf({ name: "short", tokens: 1_000, burst: 100 }),
  limitOf({ name: "third", tokens: 30, burst: 10 }),
  limitOf({ name: "long", tokens: 20, burst: 400 }),
  limitOf({ name: "odd", tokens: 7, spanUs: 13 * SECOND, burst: 11 }),
];
const limits = fc.constantFrom(...LIMITS);

function take(store: EmbeddedStore, at: number, limit: Limit, fields: TakeFields): Taken {
  return takenOf(store.call(at, callOf(takes([{ limit, key: KEY, fields }]))));
}

describe("leased mode", () => {
  it.each([
    ["leases alone", 0],
    ["leases and takes of one key", 0.25],
  ])(
    "never exceeds the limit in any span, whatever pods do: %s",
    (_, takesPart) => {
      let admitted = 0;
      fc.assert(
        fc.property(seeds, limits, (seed, limit) => {
          const admissions = new Adversaries(seed, limit, takesPart).play();
          for (const { tokens } of admissions) admitted += tokens;
          expect(excessOf(limit, admissions)).toBeLessThanOrEqual(0);
        }),
        { numRuns: 2_500 },
      );
      // The adversaries must have had something to do.
      expect(admitted).toBeGreaterThan(100_000);
    },
    120_000,
  );
});

describe("exact mode", () => {
  it("never exceeds the limit in the store's order", () => {
    fc.assert(
      fc.property(seeds, limits, (seed, limit) => {
        const random = new Prng(seed);
        const store = new EmbeddedStore();
        const admissions: Admission[] = [];
        let atUs = START;
        for (let i = 0; i < 100; i += 1) {
          atUs += random.below(4) === 0 ? random.below(3 * SECOND) : random.below(20 * MS);
          const runs = Array.from(
            { length: random.below(4) },
            () => [1 + random.below(limit.burst + 2), 1 + random.below(200)] as const,
          );
          const { admitted } = take(store, atUs, limit, { runs });
          const tokens = runs.reduce((sum, [cost], r) => sum + cost * (admitted[r] ?? 0), 0);
          admissions.push({ atUs, tokens });
        }
        expect(excessOf(limit, admissions)).toBeLessThanOrEqual(0);
      }),
      { numRuns: 1_000 },
    );
  }, 60_000);

  it("mints nothing by what is given back, however late, in parts, or together", () => {
    let credited = 0;
    fc.assert(
      fc.property(seeds, limits, (seed, limit) => {
        const pods = new GiveBacks(seed, limit);
        expect(excessOf(limit, pods.play())).toBeLessThanOrEqual(0);
        credited += pods.credited;
      }),
      { numRuns: 1_000 },
    );
    expect(credited).toBeGreaterThan(20_000);
  }, 60_000);

  it.each(["young", "newest"] as const)("would mint if pods lied of its age: %s", (word) => {
    const excesses = LIMITS.flatMap((limit) =>
      Array.from({ length: 25 }, (_, seed) => {
        return excessOf(limit, new GiveBacks(seed, limit, word).play());
      }),
    );
    expect(excesses.filter((tokens) => tokens > 0.01).length).toBeGreaterThan(8);
  });
});

describe("a run of equal costs", () => {
  /** A key in some state: tokens taken, leases and stock out, part of a token refilled. */
  function worn(seed: number, limit: Limit): { store: EmbeddedStore; atUs: number } {
    const random = new Prng(seed);
    const store = new EmbeddedStore();
    const used = random.below(limit.burst + 1);
    take(store, START, limit, { runs: [[1, used]] });
    const want = random.below(limit.burst + 1);
    store.call(START, callOf(leases([{ limit, key: KEY, fields: { need: want, want } }])));
    return { store, atUs: START + random.below(2 * SECOND) };
  }

  it("is decided as if each check were decided by itself", () => {
    fc.assert(
      fc.property(
        seeds,
        limits,
        fc.array(fc.tuple(fc.nat(12), fc.nat(30)), { maxLength: 5 }),
        (seed, limit, runs) => {
          const [one, other] = [worn(seed, limit), worn(seed, limit)];
          const together = take(one.store, one.atUs, limit, { runs });
          const single = runs.flatMap(([cost, count]) =>
            Array.from({ length: count }, () => [cost, 1] as const),
          );
          const apart = take(other.store, other.atUs, limit, { runs: single });
          let next = 0;
          const sums = runs.map(([, count]) => {
            const part = apart.admitted.slice(next, next + count);
            next += count;
            return part.reduce((sum, admitted) => sum + admitted, 0);
          });
          expect({ ...together }).toEqual({ ...apart, admitted: sums });
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it("costs the same however long it is", () => {
    const store = new EmbeddedStore();
    const [limit = limitOf({ name: "even" })] = LIMITS;
    const started = performance.now();
    const { admitted } = take(store, START, limit, { runs: [[1, 2 ** 52]] });
    expect(admitted).toEqual([1]);
    // A loop of 2^52 rounds would take a month.
    expect(performance.now() - started).toBeLessThan(5_000);
  });
});
