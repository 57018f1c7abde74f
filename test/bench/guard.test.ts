import { describe, expect, it } from "vitest";
import { findingsOf } from "../../bench/guard-findings.ts";

const BASELINE = { "sole, admitted": { bytes: 40, tokens: 1_000 } };

const withCounts = (bytes: number, tokens: number) => ({ "sole, admitted": { bytes, tokens } });

describe("the guard of the engine's cost", () => {
  it("lets counts pass that grew by up to a tenth, or fell", () => {
    expect(findingsOf(withCounts(44, 1_100), BASELINE)).toEqual([]);
    expect(findingsOf(withCounts(0, 10), BASELINE)).toEqual([]);
  });

  it("names the case, the count and the baseline of what grew by more", () => {
    expect(findingsOf(withCounts(49, 1_000), BASELINE)).toEqual([
      "sole, admitted: 49 bytes allocated, more than a tenth above the 40 of the baseline",
    ]);
    expect(findingsOf(withCounts(40, 1_101), BASELINE)).toEqual([
      "sole, admitted: 1101 tokens executed, more than a tenth above the 1000 of the baseline",
    ]);
  });

  it("notices a boxed number where the baseline allocates nothing", () => {
    const baseline = withCounts(0, 1_000);
    expect(findingsOf(withCounts(16, 1_000), baseline)).toHaveLength(1);
  });

  it("refuses a case that only one side knows", () => {
    expect(findingsOf({}, BASELINE)).toHaveLength(1);
    expect(findingsOf(BASELINE, {})).toHaveLength(1);
  });
});
