import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Decision } from "../../src/core/decision.ts";
import { createRateHeaders } from "../../src/server/headers.ts";
import { limitOf } from "./exact-decider.ts";
import { readRateLimit, readRateLimitPolicy } from "./structured-fields.ts";

const limits = fc
  .record({
    name: fc.stringMatching(/^[a-z][a-z0-9-]{0,62}$/),
    tokens: fc.integer({ min: 1, max: 1_000_000 }),
    spanUs: fc.constantFrom(1_000_000, 13_000_000, 60_000_000, 3_600_000_000, 86_400_000_000),
    burst: fc.integer({ min: 1, max: 1_000_000 }),
  })
  .map(({ name, ...spec }) => limitOf(name, spec));

const waits = fc.oneof(
  fc.constantFrom(1, 999_999, 1_000_000, 1_000_001, Number.POSITIVE_INFINITY),
  fc.double({ min: 1e-6, max: 1e15, noNaN: true }),
);

const decisions: fc.Arbitrary<Decision> = fc
  .record({
    limit: limits,
    allowed: fc.boolean(),
    left: fc.double({ min: 0, max: 1, noNaN: true }),
    resetAfterUs: fc.double({ min: 0, max: 1e15, noNaN: true }),
    waitUs: waits,
  })
  .map(({ limit, allowed, left, resetAfterUs, waitUs }) => ({
    limit,
    allowed,
    wouldDeny: false,
    reason: allowed ? undefined : "limit_exceeded",
    remaining: Math.floor(left * limit.burst),
    resetAfterUs,
    retryAfterUs: allowed ? 0 : waitUs,
    source: "local",
    degraded: false,
  }));

/** The headers that a decision is answered with, by lower-case name. */
function headersOf(speaking: Decision, all: readonly Decision[]): Record<string, string> {
  const flat: string[] = [];
  createRateHeaders(["ietf", "draft-03"], () => 0)(flat, speaking, all);
  const headers: Record<string, string> = {};
  for (let i = 0; i < flat.length; i += 2)
    headers[(flat[i] ?? "").toLowerCase()] = flat[i + 1] ?? "";
  return headers;
}

describe("rate limit headers", () => {
  it("parse as structured fields whose numbers are whole and not negative", () => {
    fc.assert(
      fc.property(decisions, (decision) => {
        const headers = headersOf(decision, [decision]);
        const [policy] = readRateLimitPolicy(headers);
        const [state] = readRateLimit(headers);
        const { limit } = decision;
        expect(policy).toMatchObject({ name: limit.name, q: limit.burst });
        expect(state).toMatchObject({ name: limit.name, r: decision.remaining });
        for (const value of [policy?.w ?? 1, state?.t ?? 0]) {
          expect(Number.isSafeInteger(value)).toBe(true);
          expect(value).toBeGreaterThanOrEqual(0);
        }
        if (policy?.w !== undefined) {
          expect(Number(policy.w) * limit.rate).toBeCloseTo(limit.burst, 3);
        }
      }),
    );
  });

  it("advertise a wait that is long enough, on denials only, never before t", () => {
    fc.assert(
      fc.property(decisions, (decision) => {
        const headers = headersOf(decision, [decision]);
        const wait = headers["retry-after"];
        const canPass = !decision.allowed && Number.isFinite(decision.retryAfterUs);
        expect(wait !== undefined).toBe(canPass);
        if (wait === undefined) return;
        expect(wait).toMatch(/^[1-9][0-9]*$/);
        expect(Number(wait) * 1e6).toBeGreaterThanOrEqual(decision.retryAfterUs);
        expect(Number(wait)).toBeLessThanOrEqual(decision.retryAfterUs / 1e6 + 1);
        expect(Number(wait)).toBeGreaterThanOrEqual(Number(readRateLimit(headers)[0]?.t));
      }),
    );
  });

  it("list every policy of a check over several limits", () => {
    fc.assert(
      fc.property(fc.array(decisions, { minLength: 1, maxLength: 16 }), (all) => {
        const [speaking] = all;
        if (speaking === undefined) return;
        const names = readRateLimitPolicy(headersOf(speaking, all)).map(({ name }) => name);
        expect(new Set(names)).toEqual(new Set(all.map(({ limit }) => limit.name)));
      }),
    );
  });
});
