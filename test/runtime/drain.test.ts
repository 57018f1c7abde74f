import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type DrainStep, drain } from "../../src/runtime/drain.ts";
import { SystemClock } from "../../src/runtime/system-clock.ts";

const MS = 1_000;
let done: string[];

const step = (name: string, ms: number, error?: Error): DrainStep => ({
  name,
  run: async () => {
    await new Promise((resolve) => setTimeout(resolve, ms));
    if (error !== undefined) throw error;
    done.push(name);
  },
});
const hangs = (name: string): DrainStep => ({ name, run: () => new Promise(() => {}) });

beforeEach(() => {
  vi.useFakeTimers();
  done = [];
});

afterEach(() => vi.useRealTimers());

/** Runs the drain on fake time; says what went wrong and how long it took. */
async function play(steps: readonly DrainStep[], withinMs: number): Promise<[string[], number]> {
  const start = performance.now();
  let tookMs = Number.NaN;
  const drained = drain(steps, withinMs * MS, new SystemClock()).then((troubles) => {
    tookMs = performance.now() - start;
    return troubles;
  });
  await vi.advanceTimersByTimeAsync(withinMs + 50);
  const lines = (await drained).map(
    ({ name, error }) => `${name}: ${error instanceof Error ? error.message : "too late"}`,
  );
  return [lines, Math.round(tookMs)];
}

describe("the drain", () => {
  it("runs its steps one after the other and no longer than they take", async () => {
    const [troubles, tookMs] = await play([step("a", 30), step("b", 10), step("c", 20)], 10_000);
    expect(troubles).toEqual([]);
    expect(done).toEqual(["a", "b", "c"]);
    expect(tookMs).toBeLessThanOrEqual(62);
  });

  it("ends in time when a step hangs, and leaves time for the steps after it", async () => {
    const steps = [step("close", 10), hangs("settle"), step("leave", 50), step("end", 50)];
    const [troubles, tookMs] = await play(steps, 10_000);
    expect(troubles).toEqual(["settle: too late"]);
    expect(done).toEqual(["close", "leave", "end"]);
    expect(tookMs).toBeLessThanOrEqual(10_001);
  });

  it("ends in time when every step hangs", async () => {
    const [troubles, tookMs] = await play([hangs("a"), hangs("b"), hangs("c")], 200);
    expect(troubles).toHaveLength(3);
    expect(tookMs).toBeLessThanOrEqual(205);
  });

  it("goes on after a step that fails, and tells the error", async () => {
    const steps = [step("leave", 10, new Error("no connection")), step("end", 10)];
    const [troubles] = await play(steps, 1_000);
    expect(troubles).toEqual(["leave: no connection"]);
    expect(done).toEqual(["end"]);
  });
});
