import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { tightest } from "../../src/core/decision.ts";
import { SoleEngine } from "../support/sole-engine.ts";
import { limitOf, MS, SECOND } from "../support/virtual-fleet.ts";

describe("O1 a whole token is there when it is due", () => {
  const slow = limitOf({ tokens: 10, spanUs: 13 * SECOND, burst: 1 });

  it("admits one check every 1.3 s at ten tokens per thirteen seconds, ten thousand times", () => {
    const pod = new SoleEngine([slow]);
    let allowed = 0;
    for (let i = 0; i <= 10_000; i += 1) {
      pod.now = i * 1_300_000;
      if (pod.check(slow).allowed) allowed += 1;
    }
    expect(allowed).toBe(10_001);
  });

  it("denies a millisecond before the token is due and admits when it is", () => {
    const pod = new SoleEngine([slow]);
    pod.check(slow);
    pod.now = 1_299 * MS;
    expect(pod.check(slow).allowed).toBe(false);
    pod.now = 1_300 * MS;
    expect(pod.check(slow).allowed).toBe(true);
  });

  it("loses no remainder of a refill at 3000/s", () => {
    const fast = limitOf({ tokens: 3000, burst: 3000 });
    const pod = new SoleEngine([fast]);
    let admitted = 0;
    for (let i = 0; i < 6000 * 60; i += 1) {
      pod.now = Math.floor((i * SECOND) / 6000);
      if (pod.check(fast).allowed) admitted += 1;
    }
    expect(admitted).toBeGreaterThanOrEqual(181_170);
    expect(admitted).toBeLessThanOrEqual(183_000);
  });
});

describe("O3 cost", () => {
  const hourly = limitOf({ tokens: 1, spanUs: 3600 * SECOND, burst: 10 });

  it("of zero peeks and spends nothing, a thousand times", () => {
    const pod = new SoleEngine([hourly]);
    for (let i = 0; i < 1000; i += 1) expect(pod.check(hourly, 0).remaining).toBe(10);
    expect(pod.check(hourly).remaining).toBe(9);
  });

  it("above the burst is denied for ever and spends nothing", () => {
    const pod = new SoleEngine([hourly]);
    const decision = pod.check(hourly, 4_294_967_295);
    expect(decision).toMatchObject({ allowed: false, reason: "cost_exceeds_burst" });
    expect(decision.retryAfterUs).toBe(Number.POSITIVE_INFINITY);
    expect(pod.check(hourly).remaining).toBe(9);
  });
});

describe("O4 time that goes back", () => {
  const limit = limitOf({ tokens: 10, burst: 10 });

  it("credits no stretch of time twice", () => {
    const pod = new SoleEngine([limit]);
    let allowed = 0;
    for (let i = 0; i < 1000; i += 1) {
      pod.now = (i % 2) * 100 * MS;
      if (pod.check(limit).allowed) allowed += 1;
    }
    expect(allowed).toBe(11);
  });
});

describe("O17 retry-after", () => {
  it.each([
    { tokens: 25, spanUs: 10 * SECOND, at: 10 * MS, waitMs: 390 },
    { tokens: 10, spanUs: 22 * SECOND, at: 100 * MS, waitMs: 2_100 },
  ])("is the true wait: $waitMs ms", ({ tokens, spanUs, at, waitMs }) => {
    const limit = limitOf({ tokens, spanUs, burst: 1 });
    const pod = new SoleEngine([limit]);
    expect(pod.check(limit)).toMatchObject({ allowed: true, retryAfterUs: 0 });
    pod.now = at;
    expect(pod.check(limit)).toMatchObject({ allowed: false, retryAfterUs: waitMs * MS });
  });

  it("is long enough: a lone client that waits it is admitted, and no earlier", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1000 }),
        fc.integer({ min: 1, max: 3600 }),
        fc.integer({ min: 1, max: 50 }),
        fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 40 }),
        (tokens, seconds, burst, costs) => {
          const limit = limitOf({ tokens, spanUs: seconds * SECOND, burst });
          const pod = new SoleEngine([limit]);
          for (const cost of costs.filter((wanted) => wanted <= burst)) {
            const first = pod.check(limit, cost);
            if (first.allowed) continue;
            pod.now += first.retryAfterUs - 1;
            expect(pod.check(limit, cost).allowed).toBe(false);
            pod.now += 1;
            expect(pod.check(limit, cost).allowed).toBe(true);
          }
        },
      ),
    );
  });
});

describe("O18 a denied check", () => {
  const global = limitOf({ name: "global", tokens: 10, spanUs: 60 * SECOND, burst: 10 });
  const strict = limitOf({ name: "strict", tokens: 3, spanUs: 60 * SECOND, burst: 3 });

  it("spends nothing of its other limits", () => {
    const pod = new SoleEngine([global, strict]);
    const verdicts = Array.from({ length: 5 }, () => {
      const decisions = pod.checkAll([{ limit: global }, { limit: strict }]);
      expect(decisions.map((decision) => decision.limit.name)).toEqual(["global", "strict"]);
      return tightest(decisions).allowed;
    });
    expect(verdicts).toEqual([true, true, true, false, false]);
    const alone = Array.from({ length: 8 }, () => pod.check(global).allowed);
    expect(alone.filter(Boolean)).toHaveLength(7);
    expect(alone[7]).toBe(false);
  });

  it("counts a key that is named twice with both costs", () => {
    const pod = new SoleEngine([strict]);
    const twice = [
      { limit: strict, cost: 2 },
      { limit: strict, cost: 2 },
    ];
    expect(tightest(pod.checkAll(twice)).allowed).toBe(false);
    expect(pod.check(strict, 3).allowed).toBe(true);
  });
});

describe("a pod without a store", () => {
  it("admits exactly what one ideal bucket admits", () => {
    const limit = limitOf({ tokens: 1000, burst: 1000 });
    const pod = new SoleEngine([limit]);
    let level = 1000;
    let last = 0;
    let admitted = 0;
    let ideal = 0;
    for (let i = 0; i < 100_000; i += 1) {
      pod.now = Math.floor(i * 333.3 + (i % 7) * 50);
      level = Math.min(1000, level + (pod.now - last) / 1000);
      last = Math.max(last, pod.now);
      if (level + 1e-9 >= 1) {
        level -= 1;
        ideal += 1;
      }
      if (pod.check(limit).allowed) admitted += 1;
    }
    expect(admitted).toBe(ideal);
  });

  it("debits a report whatever is left, and a refund never overfills", () => {
    const limit = limitOf({ tokens: 10, burst: 10 });
    const pod = new SoleEngine([limit]);
    expect(pod.engine.report(0, { limit, key: "k", cost: 15 }).remaining).toBe(0);
    pod.now = 500 * MS;
    expect(pod.check(limit).allowed).toBe(false);
    pod.now = 600 * MS;
    expect(pod.check(limit).allowed).toBe(true);
    expect(pod.engine.report(pod.now, { limit, key: "k", cost: -1_000 }).remaining).toBe(10);
  });

  it("says would-deny for a shadow limit and lets the check pass", () => {
    const shadow = limitOf({ name: "shadow", tokens: 1, burst: 1, shadow: true });
    const pod = new SoleEngine([shadow]);
    expect(pod.check(shadow)).toMatchObject({ allowed: true, wouldDeny: false });
    expect(pod.check(shadow)).toMatchObject({ allowed: true, wouldDeny: true });
  });

  it("decides an overridden key by its own numbers", () => {
    const special = limitOf({ tokens: 5, burst: 5 });
    const limit = limitOf({ tokens: 1, burst: 1, overrides: new Map([["vip", special]]) });
    const pod = new SoleEngine([limit]);
    const admitted = (key: string): number =>
      Array.from({ length: 10 }, () => pod.check(limit, 1, key)).filter((it) => it.allowed).length;
    expect(admitted("vip")).toBe(5);
    expect(admitted("other")).toBe(1);
  });
});

describe("O14 a change of configuration", () => {
  it("leaves the buckets of an unchanged limit as they are", () => {
    const drained = limitOf({ name: "a", tokens: 1, burst: 60 });
    const pod = new SoleEngine([drained, limitOf({ name: "b", tokens: 1, burst: 1 })]);
    expect(pod.check(drained, 60).allowed).toBe(true);
    let admitted = 0;
    for (let tenth = 1; tenth <= 600; tenth += 1) {
      pod.now = tenth * 100 * MS;
      if (tenth % 10 === 0) {
        const changed = limitOf({ name: "b", tokens: 1 + (tenth % 3), burst: 5 });
        pod.engine.configChanged(pod.now, [limitOf({ name: "a", tokens: 1, burst: 60 }), changed]);
      }
      if (pod.check(drained).allowed) admitted += 1;
    }
    expect(admitted).toBeGreaterThanOrEqual(59);
    expect(admitted).toBeLessThanOrEqual(61);
  });

  it("scales the level of a changed limit and gives nothing away by changing back and forth", () => {
    const big = limitOf({ tokens: 1, spanUs: 3600 * SECOND, burst: 100 });
    const small = limitOf({ tokens: 1, spanUs: 3600 * SECOND, burst: 50 });
    const pod = new SoleEngine([big]);
    pod.check(big, 60);
    pod.engine.configChanged(0, [small]);
    expect(pod.check(small, 0).remaining).toBe(20);
    for (let i = 0; i < 20; i += 1) pod.engine.configChanged(0, [i % 2 === 0 ? big : small]);
    expect(pod.check(small, 0).remaining).toBe(20);
  });
});

describe("O20 the table of keys", () => {
  it("never exceeds its maximum in a flood, keeps a key that is in use, and empties after", () => {
    const limit = limitOf({ tokens: 1, burst: 1 });
    const hot = limitOf({ name: "hot", tokens: 1, burst: 1 });
    const pod = new SoleEngine([limit, hot], 5_000);
    let hotAdmitted = 0;
    let most = 0;
    for (let i = 0; i < 1_000_000; i += 1) {
      pod.now = i * 100;
      pod.check(limit, 1, `flood-${i}`);
      if (i % 1000 === 0 && pod.check(hot, 1, "hot").allowed) hotAdmitted += 1;
      if (i % 2500 === 0) {
        pod.tick();
        most = Math.max(most, pod.engine.figures(pod.now).trackedKeys);
      }
    }
    expect(most).toBeLessThanOrEqual(5_000);
    expect(hotAdmitted).toBeGreaterThanOrEqual(95);
    expect(hotAdmitted).toBeLessThanOrEqual(105);
    for (let second = 0; second < 60; second += 1) {
      pod.now += SECOND;
      pod.tick();
    }
    expect(pod.engine.figures(pod.now).trackedKeys).toBeLessThan(50);
  });
});

describe("a debt without a store", () => {
  it("is told as it is at the instant of asking, and paid back by refill", () => {
    const limit = limitOf({ tokens: 10, burst: 10 });
    const pod = new SoleEngine([limit]);
    pod.engine.report(0, { limit, key: "k", cost: 25 });
    const debtAt = (now: number): number | undefined => pod.engine.figures(now).limits[0]?.debt;
    expect(debtAt(0)).toBe(15);
    expect(debtAt(SECOND)).toBe(5);
    expect(debtAt(2 * SECOND)).toBe(0);
  });
});
