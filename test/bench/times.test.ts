import { describe, expect, it } from "vitest";
import { ratioOf } from "../../bench/rounds.ts";
import { p99Ratio, partOf, type RoundTimes, roundTimes, timesText } from "../../bench/times.ts";

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

const round = (p99: number, longest = p99): RoundTimes => ({
  p50: 1,
  p99,
  p999: p99,
  longest,
  lateP99: 0.02,
  answers: 1_000,
});

describe("times of a round", () => {
  it("are the least that so large a part of all does not exceed", () => {
    expect(partOf(upTo(1_000), 0.5)).toBe(500);
    expect(partOf(upTo(1_000), 0.99)).toBe(990);
    expect(partOf(upTo(1_000), 0.999)).toBe(999);
    expect(partOf([7], 0.999)).toBe(7);
    expect(partOf([], 0.5)).toBeNaN();
  });

  it("do not depend on the order of the answers and tell how late requests were sent", () => {
    const times = roundTimes(upTo(200).reverse(), [0.1, 0.3, 0.2]);
    expect(times).toEqual({
      p50: 100,
      p99: 198,
      p999: 200,
      longest: 200,
      lateP99: 0.3,
      answers: 200,
    });
  });

  it("are compared round by round, so that a machine that slows down slows both", () => {
    const [ours, theirs] = [
      [round(1), round(10)],
      [round(2), round(20)],
    ];
    expect(p99Ratio(ours, theirs)).toEqual(ratioOf([1, 10], [2, 20]));
    expect(p99Ratio(ours, theirs).max).toBe(0.5);
  });

  it("are printed as medians with their spread, and the longest of all rounds", () => {
    expect(timesText([round(3), round(1, 40), round(2)])).toBe(
      "p50 1.00 (1.00 to 1.00), p99 2.00 (1.00 to 3.00), p99.9 2.00 (1.00 to 3.00), " +
        "longest 40.00, sent late p99 0.02",
    );
  });
});
