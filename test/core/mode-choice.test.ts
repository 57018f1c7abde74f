import { describe, expect, it } from "vitest";
import { bandOf, chooseMode, hybridBound } from "../../src/core/mode-choice.ts";
import { limitOf, MS, SECOND } from "../support/virtual-fleet.ts";

const choose = (tokens: number, spanUs: number, burst: number, pods: number) =>
  chooseMode(limitOf({ tokens, spanUs, burst, mode: "auto" }), {
    band: bandOf(pods),
    decisionTimeoutUs: 10 * MS,
    hasLargeCosts: false,
  });

describe("the mode of a limit in auto", () => {
  it.each([
    { tokens: 5, span: 900, burst: 5, pods: 2, mode: "exact" },
    { tokens: 1000, span: 86_400, burst: 1000, pods: 20, mode: "hybrid", ms: 500 },
    { tokens: 10, span: 1, burst: 100, pods: 20, mode: "hybrid", ms: 500 },
    { tokens: 50, span: 1, burst: 50, pods: 20, mode: "exact" },
    { tokens: 100, span: 1, burst: 100, pods: 20, mode: "exact" },
    { tokens: 1000, span: 1, burst: 50, pods: 20, mode: "exact" },
    { tokens: 200, span: 1, burst: 200, pods: 20, mode: "hybrid", ms: 100 },
    { tokens: 1000, span: 1, burst: 1000, pods: 20, mode: "hybrid", ms: 100 },
    { tokens: 1000, span: 1, burst: 300, pods: 20, mode: "hybrid", ms: 57 },
    { tokens: 1000, span: 1, burst: 100, pods: 20, mode: "leased" },
    { tokens: 5000, span: 1, burst: 500, pods: 20, mode: "leased" },
    { tokens: 10, span: 1, burst: 10, pods: 1, mode: "hybrid", ms: 100 },
    { tokens: 1000, span: 1, burst: 100, pods: 1, mode: "leased" },
    { tokens: 1000, span: 1, burst: 1000, pods: 100, mode: "hybrid", ms: 100 },
    { tokens: 5000, span: 1, burst: 500, pods: 100, mode: "leased" },
    { tokens: 1000, span: 1, burst: 300, pods: 100, mode: "exact" },
  ])("is $mode for $tokens per $span s, burst $burst, on $pods pods", (row) => {
    const { mode, intervalUs } = choose(row.tokens, row.span * SECOND, row.burst, row.pods);
    expect(mode).toBe(row.mode);
    if (row.ms !== undefined) expect(Math.floor(intervalUs / MS)).toBe(row.ms);
  });

  it("never exceeds the tolerance that was asked for", () => {
    for (const burst of [100, 300, 1000, 5000]) {
      for (const pods of [1, 5, 20, 60]) {
        const limit = limitOf({ tokens: 1000, burst, mode: "auto", tolerance: 0.4 });
        const terms = { band: bandOf(pods), decisionTimeoutUs: 10 * MS, hasLargeCosts: false };
        const { mode, intervalUs } = chooseMode(limit, terms);
        if (mode !== "hybrid") continue;
        expect(hybridBound(limit, bandOf(pods), intervalUs, 5 * MS)).toBeLessThanOrEqual(
          0.4 * burst + 1,
        );
      }
    }
  });

  it("is exact while costs are a large part of the burst", () => {
    const limit = limitOf({ tokens: 1000, burst: 1000, mode: "auto" });
    const terms = { band: 4, decisionTimeoutUs: 10 * MS, hasLargeCosts: true };
    expect(chooseMode(limit, terms)).toMatchObject({ mode: "exact" });
  });

  it("is what was configured otherwise, and says so", () => {
    const limit = limitOf({ tokens: 1, burst: 1, mode: "leased" });
    const terms = { band: 64, decisionTimeoutUs: 10 * MS, hasLargeCosts: false };
    expect(chooseMode(limit, terms).reason).toBe("configured as leased");
  });
});

it("a band is the smallest power of two that is not below the count", () => {
  expect([0, 1, 2, 3, 4, 5, 20, 32, 33].map(bandOf)).toEqual([1, 1, 2, 4, 4, 8, 32, 32, 64]);
});
