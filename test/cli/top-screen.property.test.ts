import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { StatusAnswer } from "../../src/cli/status-answer.ts";
import { cut, fitted, painted, visible, widthOf } from "../../src/cli/terminal-text.ts";
import { countText, rateText } from "../../src/cli/top-numbers.ts";
import { topScreen } from "../../src/cli/top-screen.ts";

const rates = fc.record({
  allowed: fc.double({ min: 0, max: 1e9, noNaN: true }),
  denied: fc.double({ min: 0, max: 1e9, noNaN: true }),
  shadow_denied: fc.constantFrom(0, 3),
});
const anyText = fc.string({ unit: "binary", maxLength: 300 });
const keys = fc.array(fc.record({ limit: anyText, key: anyText, per_second: fc.nat() }), {
  maxLength: 10,
});
const limit = fc.record({
  name: fc.stringMatching(/^[a-z][a-z0-9-]{0,62}$/),
  rate_per_second: fc.double({ min: 1e-9, max: 1e12, noNaN: true }),
  burst: fc.nat(),
  mode: fc.constantFrom("hybrid", "leased", "exact", "sole"),
  over_admission_bound: fc.nat(),
  shadow: fc.boolean(),
  share_ratio: fc.double({ min: 0, max: 1, noNaN: true }),
  debt_tokens: fc.nat(),
  per_second: rates,
});
const course = fc.array(fc.nat(1e6), { maxLength: 300 });

const answers: fc.Arbitrary<StatusAnswer> = fc.record({
  version: fc.constant("1.2.3"),
  fleet: fc.constant("checkout"),
  pod: anyText,
  uptime_seconds: fc.nat(),
  config: fc.constant({
    hash: "abcdef0123",
    loaded_at: "2026-11-30T00:00:00.000Z",
    last_reload: { outcome: "none" as const },
    needs_restart: ["redis"],
  }),
  store: fc.record({
    kind: fc.constantFrom("redis", "embedded"),
    tier: fc.constantFrom("connected", "doubtful", "isolated"),
  }),
  fallback_active: fc.boolean(),
  live_pods: fc.nat(),
  tracked_keys: fc.nat(),
  per_second: rates,
  limits: fc.array(limit, { minLength: 1, maxLength: 40 }),
  keys: fc.record({ sampled_every: fc.constant(1), busiest: keys, most_denied: keys }),
  started: fc.boolean(),
  draining: fc.boolean(),
  history: fc.record({
    last: fc.nat(),
    allowed: course,
    denied: course,
    shadow_denied: course,
    p99_ms: fc.array(fc.option(fc.double({ min: 0, max: 1e3, noNaN: true }), { nil: null })),
  }),
});

describe("the screen of aliquot top", () => {
  it("never exceeds the terminal, and holds nothing that the terminal would act upon", () => {
    const sizes = fc.record({
      columns: fc.integer({ min: 20, max: 200 }),
      rows: fc.integer({ min: 3, max: 80 }),
      isUnicode: fc.boolean(),
    });
    fc.assert(
      fc.property(answers, sizes, (status, size) => {
        const lines = topScreen(status, size, "no sidecar answers");
        expect(lines.length).toBeLessThanOrEqual(size.rows);
        for (const line of lines) {
          const text = painted(line, size.columns, false);
          expect(widthOf(text)).toBeLessThanOrEqual(size.columns);
          expect(text).toBe(visible(text));
        }
      }),
      { numRuns: 200 },
    );
  });

  it("cuts and fills any text to the columns asked for", () => {
    fc.assert(
      fc.property(anyText, fc.nat(60), (raw, columns) => {
        const text = visible(raw);
        expect(widthOf(cut(text, columns))).toBeLessThanOrEqual(columns);
        expect(widthOf(fitted(text, columns))).toBe(columns);
        if (widthOf(text) <= columns) expect(cut(text, columns)).toBe(text);
      }),
    );
  });

  it.each([
    [0, "0"],
    [7, "7"],
    [7.25, "7.25"],
    [45.67, "45.7"],
    [456.7, "457"],
    [99_999, "99999"],
    [1_234_567, "1.2M"],
  ])("writes %d as %s", (value, text) => {
    expect(countText(value)).toBe(text);
  });

  it.each([
    [100, "100/s"],
    [5 / 60, "5/m"],
    [1 / 3_600, "1/h"],
    [3 / 86_400, "3/d"],
    [1_000 / 3_600, "16.7/m"],
  ])("writes a rate of %d a second as %s", (rate, text) => {
    expect(rateText(rate)).toBe(text);
  });
});
