import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import type { Check } from "../../src/core/decision.ts";
import { HeavyKeys } from "../../src/observe/heavy-keys.ts";
import { KeyRanking } from "../../src/observe/key-ranking.ts";
import type { Decider } from "../../src/ports/decider.ts";
import type { RankedKey } from "../../src/ports/observed.ts";
import { ExactDecider, limitOf } from "../server/exact-decider.ts";

describe("the keys with the largest counts", () => {
  it("are found in few places: what is told is certain, and no large key is missed", () => {
    const streams = fc.array(fc.tuple(fc.nat(30), fc.integer({ min: 1, max: 9 })), {
      maxLength: 300,
    });
    fc.assert(
      fc.property(streams, fc.integer({ min: 1, max: 12 }), (stream, places) => {
        const heavy = new HeavyKeys(places);
        const truth = new Map<string, number>();
        let total = 0;
        for (const [key, amount] of stream) {
          heavy.add("l", `k${key}`, amount);
          truth.set(`k${key}`, (truth.get(`k${key}`) ?? 0) + amount);
          total += amount;
        }
        const told = heavy.top(places);
        for (const { key, count } of told) expect(count).toBeLessThanOrEqual(truth.get(key) ?? 0);
        expect(told.map(({ count }) => -count)).toEqual(
          told.map(({ count }) => -count).sort((a, b) => a - b),
        );
        // A key that came before all others and was never pushed out is told exactly.
        if (truth.size <= places) {
          expect(new Map(told.map(({ key, count }) => [key, count]))).toEqual(truth);
        }
        const names = told.map(({ key }) => key);
        for (const [key, count] of truth) if (count > total / places) expect(names).toContain(key);
      }),
    );
  });

  it("include one with half of all counts, however many others there are", () => {
    const heavy = new HeavyKeys(10);
    for (let i = 0; i < 10_000; i += 1) {
      heavy.add("l", `rare-${i}`, 1);
      heavy.add("l", "hot", 1);
    }
    const [first, second] = heavy.top(2);
    expect(first).toMatchObject({ key: "hot" });
    expect(first?.count).toBeGreaterThan(9_900);
    expect(second?.count).toBeLessThan(10);
  });

  it("keep limits apart, also where name and key would read the same together", () => {
    const heavy = new HeavyKeys(10);
    heavy.add("ab", "c", 1);
    heavy.add("a", "bc", 2);
    heavy.add("a", "1:b", 4);
    expect(heavy.top(10)).toEqual([
      { limit: "a", key: "1:b", count: 4 },
      { limit: "a", key: "bc", count: 2 },
      { limit: "ab", key: "c", count: 1 },
    ]);
  });

  it("fade, and free their places", () => {
    const heavy = new HeavyKeys(2);
    heavy.add("l", "a", 1);
    heavy.add("l", "b", 8);
    heavy.decay(0.5, 1);
    heavy.add("l", "c", 1);
    expect(heavy.top(3)).toEqual([
      { limit: "l", key: "b", count: 4 },
      { limit: "l", key: "c", count: 1 },
    ]);
    for (let i = 0; i < 4; i += 1) heavy.decay(0.5, 1);
    expect(heavy.top(3)).toEqual([]);
  });
});

const api = limitOf("api", { tokens: 5, burst: 5 });
const shadow = limitOf("watch", { tokens: 5, burst: 5, shadow: true });

let exact: ExactDecider;
let ranking: KeyRanking;
let decider: Decider;

beforeEach(() => {
  exact = new ExactDecider([api, shadow]);
  ranking = new KeyRanking();
  decider = ranking.over(exact);
});

/** Asks so many times and waits for nothing. */
function ask(times: number, ...checks: readonly Check[]): void {
  for (let i = 0; i < times; i += 1) void decider.decide(checks);
}

const check = (key: string, limit = api, cost = 1): Check => ({ limit, key, cost });
const named = (ranked: readonly RankedKey[]): string[] => ranked.map(({ key }) => key);

describe("the ranking of keys", () => {
  it("passes on what the decider answers", () => {
    expect(decider.decide([check("a")])).toMatchObject([{ allowed: true, remaining: 4 }]);
    expect(decider.report(check("a", api, 2))).toMatchObject({ remaining: 2 });
    expect(decider.limit("api")).toBe(api);
    expect(decider.limits()).toEqual([api, shadow]);
    expect(decider.standing(api)).toMatchObject({ boundTokens: 42 });
  });

  it("looks at every decision while there are few", () => {
    ask(20, check("busy"));
    ask(4, check("quiet"));
    ranking.passed(1);
    const { sampledEvery, busiest, mostDenied } = ranking.figures(10);
    expect(sampledEvery).toBe(1);
    expect(named(busiest)).toEqual(["busy", "quiet"]);
    expect(busiest[0]?.perSecond).toBeCloseTo(20, 0);
    expect(named(mostDenied)).toEqual(["busy"]);
    expect(mostDenied[0]?.perSecond).toBeCloseTo(15, 0);
    expect(named(ranking.figures(1).busiest)).toEqual(["busy"]);
  });

  it("counts what a shadow limit would deny, and not what only peeks", () => {
    ask(8, check("s", shadow));
    ask(1, check("peek", api, 0));
    ranking.passed(1);
    expect(named(ranking.figures(9).busiest)).toEqual(["s"]);
    expect(ranking.figures(9).mostDenied[0]?.perSecond).toBeCloseTo(3, 0);
  });

  it("notes a check that waits for the store once it is decided, and survives one that fails", async () => {
    exact.hold = () => Promise.resolve();
    await decider.decide([check("held")]);
    exact.hold = () => Promise.reject(new Error("gone"));
    await expect(decider.decide([check("lost")])).rejects.toThrow("gone");
    ranking.passed(1);
    expect(named(ranking.figures(9).busiest)).toEqual(["held"]);
  });

  it("takes samples when there are many, and still tells rates and order", () => {
    // 50,000 decisions a second in a pattern that a constant gap would fall in step with.
    const pattern = ["a", "b", "a", "c", "a", "b", "a", "d"].map((key) => check(key));
    for (let second = 0; second < 10; second += 1) {
      for (let i = 0; i < 6_250; i += 1) for (const each of pattern) ask(1, each);
      ranking.passed(1);
    }
    const { sampledEvery, busiest } = ranking.figures(4);
    expect(sampledEvery).toBeGreaterThanOrEqual(32);
    expect(named(busiest).slice(0, 2)).toEqual(["a", "b"]);
    const [a, b, c] = busiest.map(({ perSecond }) => perSecond / 50_000);
    expect(a).toBeGreaterThan(0.45);
    expect(a).toBeLessThan(0.55);
    expect(b).toBeGreaterThan(0.21);
    expect(b).toBeLessThan(0.29);
    expect(c).toBeGreaterThan(0.09);
    expect(c).toBeLessThan(0.16);
  });

  it("looks closely again when the rush is over", () => {
    ask(300_000, check("rush"));
    ranking.passed(1);
    for (let second = 0; second < 12; second += 1) ranking.passed(1);
    expect(ranking.figures(1).sampledEvery).toBe(1);
    ask(1, check("late"));
    expect(named(ranking.figures(9).busiest)).toContain("late");
  });

  it("forgets within minutes", () => {
    ask(100, check("gone"));
    for (let second = 0; second < 400; second += 1) ranking.passed(1);
    expect(ranking.figures(9)).toEqual({ sampledEvery: 1, busiest: [], mostDenied: [] });
  });
});
