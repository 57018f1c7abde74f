/** The rules of the central baselines, each as a small table of instants, costs and answers. */
import { describe, expect, test } from "vitest";
import type { CentralRule } from "../../../sim/baselines/central.ts";
import { FIXED_WINDOW_RULE } from "../../../sim/baselines/fixed-window.ts";
import { GCRA_RULE } from "../../../sim/baselines/gcra.ts";
import { LEAKY_BUCKET_RULE } from "../../../sim/baselines/leaky-bucket.ts";
import { LocalBucket } from "../../../sim/baselines/local-bucket.ts";
import { SLIDING_COUNTER_RULE } from "../../../sim/baselines/sliding-counter.ts";
import { SLIDING_LOG_RULE } from "../../../sim/baselines/sliding-log.ts";
import { TOKEN_BUCKET_RULE } from "../../../sim/baselines/token-bucket.ts";
import { limitOf } from "../../../sim/scenarios/scenario-of.ts";

/** 10/s, burst 10: counting rules count 10 in spans of one second. */
const LIMIT = limitOf({ rate: 10, burst: 10 });

/** [second, requests of cost 1 at that instant, how many of them pass]. */
type Row = readonly [second: number, asked: number, passed: number];

function play<State>(rule: CentralRule<State>, rows: readonly Row[]): Row[] {
  const state = rule.fresh(LIMIT, 0);
  return rows.map(([second, asked]) => {
    let passed = 0;
    for (let i = 0; i < asked; i += 1) {
      if (rule.admit(state, LIMIT, second * 1e6, 1).allowed) passed += 1;
    }
    return [second, asked, passed];
  });
}

/** A rule with its state forgotten, so that one table can hold all. */
function ruled<State>(
  rule: CentralRule<State>,
  rows: readonly Row[],
): [string, () => Row[], Row[]] {
  return [rule.name, () => play(rule, rows), [...rows]];
}

describe("what passes at which instant", () => {
  test.each([
    ruled(FIXED_WINDOW_RULE, [
      [0.9, 15, 10],
      [1, 15, 10], // the edge: twenty within 100 ms
      [1.9, 5, 0],
      [5, 15, 10],
    ]),
    ruled(SLIDING_LOG_RULE, [
      [0.9, 15, 10],
      [1, 15, 0],
      [1.89, 5, 0],
      [1.9, 15, 10], // exactly one span later
    ]),
    ruled(SLIDING_COUNTER_RULE, [
      [0.9, 15, 10],
      [1, 15, 0], // all of the previous span still counts
      [1.5, 15, 5], // half of it
      [3.5, 15, 10], // a span without requests lies between
    ]),
    ruled(TOKEN_BUCKET_RULE, [
      [0.9, 15, 10],
      [1, 15, 1],
      [1.5, 15, 5],
      [9, 15, 10],
    ]),
    ruled(GCRA_RULE, [
      [0.9, 15, 10],
      [1, 15, 1],
      [1.5, 15, 5],
      [9, 15, 10],
    ]),
    ruled(LEAKY_BUCKET_RULE, [
      [0.9, 15, 11], // the first one after a rest is free
      [1, 15, 1],
      [1.5, 15, 5],
      [9, 15, 11],
    ]),
  ])("%s", (_, played, rows) => {
    expect(played()).toEqual(rows);
  });
});

describe("how long a denied caller is told to wait", () => {
  test.each([
    ["fixed window: until the edge", () => waitOf(FIXED_WINDOW_RULE, 0.25), 0.75],
    ["sliding log: until the oldest leaves", () => waitOf(SLIDING_LOG_RULE, 0.25), 0.75],
    ["token bucket: until one token is there", () => waitOf(TOKEN_BUCKET_RULE, 0.05), 0.05],
    ["GCRA: the same", () => waitOf(GCRA_RULE, 0.05), 0.05],
  ])("%s", (_, told, seconds) => {
    expect(told()).toBeCloseTo(seconds, 5);
  });
});

/** Seconds told at `second`, when ten passed at 0. */
function waitOf<State>(rule: CentralRule<State>, second: number): number {
  const state = rule.fresh(LIMIT, 0);
  for (let i = 0; i < 10; i += 1) rule.admit(state, LIMIT, 0, 1);
  const answer = rule.admit(state, LIMIT, second * 1e6, 1);
  expect(answer.allowed).toBe(false);
  return answer.retryAfterUs / 1e6;
}

test("GCRA and the token bucket agree on random requests", () => {
  const [bucket, arrival] = [TOKEN_BUCKET_RULE.fresh(LIMIT, 0), GCRA_RULE.fresh(LIMIT, 0)];
  let [nowUs, state] = [0, 7];
  for (let i = 0; i < 5_000; i += 1) {
    state = (state * 48_271) % 2_147_483_647;
    nowUs += state % 150_001;
    const cost = 1 + (state % 3);
    const byBucket = TOKEN_BUCKET_RULE.admit(bucket, LIMIT, nowUs, cost).allowed;
    expect(GCRA_RULE.admit(arrival, LIMIT, nowUs, cost).allowed).toBe(byBucket);
  }
});

test("a divided bucket starts full, refills by its part and loses what no longer fits", () => {
  const bucket = new LocalBucket(LIMIT, 0, 0.5, 0.5);
  expect(bucket.holds(0, 5)).toBe(true);
  expect(bucket.holds(0, 6)).toBe(false);
  bucket.take(5);
  expect(bucket.waitUs(1)).toBe(200_000);
  expect(bucket.holds(200_000, 1)).toBe(true);
  expect(bucket.waitUs(6)).toBe(Number.POSITIVE_INFINITY);
  bucket.divide(2_000_000, 0.1, 0.1);
  expect(bucket.holds(2_000_000, 1)).toBe(true);
  expect(bucket.holds(2_000_000, 2)).toBe(false);
});
