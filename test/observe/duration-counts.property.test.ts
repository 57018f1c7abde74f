import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BUCKETS_US, DurationCounts, readHistogram } from "../../src/observe/duration-counts.ts";

/** Bounds and their neighbours, where an off-by-one would show, are common. */
const durations = fc.oneof(
  fc.constantFrom(...BUCKETS_US.flatMap((bound) => [bound - 1, bound, bound + 1])),
  fc.double({ min: 0, max: 5_000_000, noNaN: true }),
);

describe("counted durations", () => {
  it("give in each bucket the number of durations up to its bound", () => {
    fc.assert(
      fc.property(fc.array(durations, { maxLength: 100 }), (all) => {
        const counts = new DurationCounts();
        for (const duration of all) counts.observeUs(duration);
        const reading = readHistogram(counts);
        expect(reading.count).toBe(all.length);
        const sum = all.reduce((total, duration) => total + duration, 0);
        expect(reading.sumSeconds).toBeCloseTo(sum / 1e6, 6);
        for (const [index, { leSeconds, count }] of reading.buckets.entries()) {
          const bound = BUCKETS_US[index] ?? Number.POSITIVE_INFINITY;
          expect(leSeconds).toBe(bound / 1e6);
          expect(count).toBe(all.filter((duration) => duration <= bound).length);
        }
      }),
    );
  });
});
