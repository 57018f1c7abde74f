import { afterEach, describe, expect, it, vi } from "vitest";
import { SystemClock } from "../../src/runtime/system-clock.ts";

afterEach(() => vi.restoreAllMocks());

describe("the system clock", () => {
  it("counts whole microseconds at the pace of the machine", async () => {
    const clock = new SystemClock();
    const start = clock.monotonicUs();
    const startMs = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 20));
    const elapsedUs = clock.monotonicUs() - start;
    const elapsedMs = performance.now() - startMs;
    expect(Number.isSafeInteger(elapsedUs)).toBe(true);
    expect(Math.abs(elapsedUs / 1_000 - elapsedMs)).toBeLessThan(5);
  });

  it("never goes back, whatever the machine says", () => {
    const clock = new SystemClock();
    const readings = [10, 12.3456, 11, 12.3451, 13];
    const now = vi.spyOn(performance, "now");
    const told = readings.map((reading) => {
      now.mockReturnValue(reading);
      return clock.monotonicUs();
    });
    expect(told).toEqual([10_000, 12_345, 12_345, 12_345, 13_000]);
  });
});
