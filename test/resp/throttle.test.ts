import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { US_PER_SECOND } from "../../src/core/units.ts";
import { limitOf } from "../server/exact-decider.ts";
import { SoleEngine } from "../support/sole-engine.ts";
import { deciderOf, five, INLINE, partsOf, Wire } from "./resp-door.ts";

interface Stage {
  readonly sole: SoleEngine;
  readonly door: Wire;
}

function open(inlineLimitsMax = 100): Stage {
  const sole = new SoleEngine([limitOf("api"), INLINE]);
  const decider = deciderOf(sole, [limitOf("api"), INLINE]);
  return { sole, door: new Wire(partsOf(decider, () => sole.now, inlineLimitsMax)) };
}

describe("CL.THROTTLE, as redis-cell answers it", () => {
  it("lets a burst pass and then one per period and count", async () => {
    const { sole, door } = open();
    const ask = (quantity: number): Promise<string> =>
      door.ask("CL.THROTTLE", "user123", 4, 60, 60, quantity);
    const at = (ms: number): void => {
      sole.now = ms * 1_000;
    };
    // A quantity above the burst can never pass, and spends nothing.
    expect(await ask(6)).toBe(five(1, 5, 5, -1, 0));
    for (const left of [4, 3, 2, 1, 0]) expect(await ask(1)).toBe(five(0, 5, left, -1, 5 - left));
    expect(await ask(1)).toBe(five(1, 5, 0, 1, 5));
    at(3_000);
    expect(await ask(1)).toBe(five(0, 5, 2, -1, 3));
    at(3_100);
    expect(await ask(1)).toBe(five(0, 5, 1, -1, 4));
    at(4_000);
    expect(await ask(1)).toBe(five(0, 5, 1, -1, 4));
    at(8_000);
    expect(await ask(1)).toBe(five(0, 5, 4, -1, 1));
    at(9_500);
    expect(await ask(1)).toBe(five(0, 5, 4, -1, 1));
    // A quantity of 0 looks and spends nothing.
    expect(await ask(0)).toBe(five(0, 5, 4, -1, 1));
    expect(await ask(2)).toBe(five(0, 5, 2, -1, 3));
    expect(await ask(5)).toBe(five(1, 5, 2, 3, 3));
  });

  it("takes a quantity of 1 when none is given", async () => {
    const { door } = open();
    expect(await door.ask("cl.throttle", "k", 15, 30, 60)).toBe(five(0, 16, 15, -1, 2));
  });

  it("allows one at a time with a max_burst of 0", async () => {
    const { door } = open();
    expect(await door.ask("CL.THROTTLE", "k", 0, 1, 10)).toBe(five(0, 1, 0, -1, 10));
    expect(await door.ask("CL.THROTTLE", "k", 0, 1, 10)).toBe(five(1, 1, 0, 10, 10));
    // Not limited, because nothing was asked for.
    expect(await door.ask("CL.THROTTLE", "k", 0, 1, 10, 0)).toBe(five(0, 1, 0, -1, 10));
  });

  it("keeps a bucket for each key and each set of parameters", async () => {
    const { door } = open();
    await door.ask("CL.THROTTLE", "k", 4, 60, 60, 5);
    expect(await door.ask("CL.THROTTLE", "k", 4, 60, 60)).toMatch(/^\*5\r\n:1/);
    expect(await door.ask("CL.THROTTLE", "other", 4, 60, 60)).toMatch(/^\*5\r\n:0/);
    expect(await door.ask("CL.THROTTLE", "k", 4, 30, 60)).toMatch(/^\*5\r\n:0/);
    expect(await door.ask("CL.THROTTLE", "k", 5, 60, 60)).toMatch(/^\*5\r\n:0/);
  });

  it("admits no more than burst and rate, and a wait that is told is long enough", async () => {
    const terms = fc.record({
      maxBurst: fc.integer({ min: 0, max: 20 }),
      count: fc.integer({ min: 1, max: 100 }),
      period: fc.integer({ min: 1, max: 100 }),
      steps: fc.array(
        fc.record({
          quantity: fc.integer({ min: 0, max: 8 }),
          pauseUs: fc.integer({ min: 0, max: 3_000_000 }),
        }),
        { minLength: 1, maxLength: 30 },
      ),
    });
    await fc.assert(
      fc.asyncProperty(terms, async ({ maxBurst, count, period, steps }) => {
        const { sole, door } = open();
        let admitted = 0;
        for (const { quantity, pauseUs } of steps) {
          sole.now += pauseUs;
          const args = ["CL.THROTTLE", "k", maxBurst, count, period] as const;
          const [limited, limit, left, retry] = integersOf(await door.ask(...args, quantity));
          if (limited === 0) admitted += quantity;
          const refilled = (sole.now * count) / (period * US_PER_SECOND);
          expect(admitted).toBeLessThanOrEqual(maxBurst + 1 + refilled + 1e-6);
          expect(limit).toBe(maxBurst + 1);
          expect(left).toBeLessThanOrEqual(limit ?? 0);
          if (limited === 0 || retry === -1) continue;
          sole.now += (retry ?? 0) * US_PER_SECOND;
          expect((await door.ask(...args, quantity)).slice(4, 6)).toBe(":0");
          admitted += quantity;
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe("what CL.THROTTLE refuses", () => {
  it.each([
    [["k", 1, 1], "it takes key max_burst count period [quantity]"],
    [["k", 1, 1, 1, 1, 1], "wrong number of arguments for 'cl.throttle' command"],
    [["", 1, 1, 1], "key must have 1 to 256 bytes, got 0"],
    [["k", -1, 1, 1], "max_burst must be a whole number from 0 to 9999999998, got '-1'"],
    [["k", "x", 1, 1], "max_burst must be a whole number from 0 to 9999999998, got 'x'"],
    [["k", 1, 0, 1], "count must be a whole number from 1 to 9999999999, got '0'"],
    [["k", 1, 1, 0], "period must be a whole number from 1 to 999999999, got '0'"],
    [["k", 1, 1, "60s"], "period must be a whole number from 1 to 999999999, got '60s'"],
    [["k", 1, 1, 1, -1], "quantity must be a whole number from 0 to 1000000000, got '-1'"],
    [["k", 9_999_999_998, 1, 999_999_999], "cannot be counted exactly; choose a smaller max_burst"],
  ])("%j", async (args, fault) => {
    const { door, sole } = open();
    const answer = await door.ask("CL.THROTTLE", ...args);
    expect(answer).toMatch(/^-ERR [ -~]+\r\n$/);
    expect(answer).toContain(fault);
    expect(sole.engine.figures(0).trackedKeys).toBe(0);
  });

  it("is everything where callers may bring no limits", async () => {
    const sole = new SoleEngine([limitOf("api")]);
    const parts = partsOf(deciderOf(sole, [limitOf("api")]), () => sole.now);
    const inline = () => ({ inlineLimit: undefined, inlineLimitsMax: 100 });
    const door = new Wire({ ...parts, inline });
    const answer = await door.ask("CL.THROTTLE", "k", 1, 1, 1);
    expect(answer).toContain("-ERR callers may bring no limits here: resp.inline_limits is not");
  });
});

describe("the number of limits that callers bring", () => {
  it("has a maximum, which is told, and holds for limits and not for keys", async () => {
    const { door } = open(2);
    await door.ask("CL.THROTTLE", "k", 1, 1, 1);
    await door.ask("CL.THROTTLE", "k", 2, 1, 1);
    for (let key = 0; key < 100; key += 1) {
      expect(await door.ask("CL.THROTTLE", `k${key}`, 1, 1, 1)).toMatch(/^\*5\r\n:0/);
    }
    const answer = await door.ask("CL.THROTTLE", "k", 3, 1, 1);
    expect(answer).toContain("-ERR callers of this pod bring 2 limits already, and");
    expect(answer).toContain("resp.max_inline_limits is 2");
    expect(await door.ask("CL.THROTTLE", "k", 2, 1, 1)).toMatch(/^\*5\r\n:0/);
  });

  it("counts a limit no more once all its buckets are full", async () => {
    const { door, sole } = open(1);
    await door.ask("CL.THROTTLE", "a", 9, 1, 1, 10);
    await door.ask("CL.THROTTLE", "b", 9, 1, 1, 1);
    sole.now += 9.9 * US_PER_SECOND;
    expect(await door.ask("CL.THROTTLE", "k", 1, 1, 1)).toContain("-ERR");
    sole.now += 0.1 * US_PER_SECOND;
    expect(await door.ask("CL.THROTTLE", "k", 1, 1, 1)).toBe(five(0, 2, 1, -1, 1));
    expect(await door.ask("CL.THROTTLE", "a", 9, 1, 1)).toContain("-ERR");
    sole.now += US_PER_SECOND;
    expect(await door.ask("CL.THROTTLE", "a", 9, 1, 1)).toBe(five(0, 10, 9, -1, 1));
  });
});

/** The integers of a reply to a check. */
function integersOf(reply: string): number[] {
  return reply.split("\r\n:").slice(1).map(Number.parseFloat);
}
