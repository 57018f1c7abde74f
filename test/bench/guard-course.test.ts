import { describe, expect, it } from "vitest";
import { BATCH_CHECKS, BatchCourse } from "../../bench/guard-batch.ts";
import { GUARD_CASES, GUARD_KEYS, guardCourse } from "../../bench/guard-cases.ts";
import { defineLimit } from "../../src/core/limit.ts";

const limitOf = (name: string) =>
  defineLimit({
    name,
    tokens: 1_000_000,
    spanUs: 1_000_000,
    burst: 1_000_000,
    intervalUs: 100_000,
    fallback: { policy: "local", margin: 0.9, maxPods: 20 },
  });

describe("the courses of the guard", () => {
  it.each(GUARD_CASES)("can be gone again and again: $name", (guardCase) => {
    const course = guardCourse(guardCase);
    for (let pass = 0; pass < 3; pass += 1) {
      course.prepare();
      course.pass();
    }
  });

  it("decides every check of every batch, and answers with a result for each", () => {
    const course = new BatchCourse(limitOf("bench"), GUARD_KEYS);
    course.pass();
    const results = (JSON.parse(course.lastBody) as { results: object[] }).results;
    expect(results).toHaveLength(BATCH_CHECKS);
    for (const result of results) expect(result).toMatchObject({ allowed: true, limit: "bench" });
    expect(course.trackedKeys).toBe(GUARD_KEYS);
  });
});
