import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Wildcard } from "../../src/envoy/wildcard.ts";

/** Few letters, so that parts overlap and repeat. */
const letters = fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 8 });
const patterns = fc
  .array(fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 3 }), {
    minLength: 2,
    maxLength: 5,
  })
  .map((parts) => parts.join("*"));

describe("a pattern with stars", () => {
  it("stands for the values that the same regular expression matches", () => {
    fc.assert(
      fc.property(patterns, letters, (pattern, value) => {
        const expected = new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(value);
        expect(new Wildcard(pattern).matches(value)).toBe(expected);
      }),
      { numRuns: 5_000 },
    );
  });

  it("takes no time to speak of where backtracking would take for ever", () => {
    const wildcard = new Wildcard(`${"*a".repeat(30)}*b`);
    expect(wildcard.matches(`${"a".repeat(50_000)}c`)).toBe(false);
  });
});
