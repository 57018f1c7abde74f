import { describe, expect, it } from "vitest";
import { type Counts, noReconciles, Tally } from "../../src/core/tally.ts";
import { outlivingMetrics, pooledMetric } from "../../src/observe/pooled-processes.ts";
import { PooledReports } from "../../src/workers/pooled-reports.ts";
import type { ReportedLimit, WorkerReport } from "../../src/workers/worker-report.ts";

const limitOf = (name: string, allowed: number, rest: Partial<ReportedLimit> = {}) => {
  const tally = new Tally();
  tally.decisions[0] = allowed;
  tally.tokens[0] = allowed;
  return { name, tally, ...rest };
};

const reportOf = (
  limits: readonly ReportedLimit[],
  rest: Partial<WorkerReport> = {},
  counts: Partial<Counts> = {},
): WorkerReport => ({
  counts: {
    trackedKeys: 5,
    evictedKeys: 1,
    pods: 6,
    listing: undefined,
    fallbackActive: false,
    storeUp: true,
    lostTokens: 2,
    reconciled: { ...noReconciles(), ok: 10, keys: 20 },
    ...counts,
    limits,
  },
  durations: { uds: { counts: new Float64Array([3, 1]), sumUs: 100 } },
  reconcileDurations: { counts: new Float64Array([1, 0]), sumUs: 50 },
  forwardUnmatched: 1,
  unmatchedDescriptors: 2,
  ...rest,
});

const DETAILS = {
  standings: new Map(),
  keys: { sampledEvery: 2, busiest: [{ limit: "a", key: "k", perSecond: 4 }], mostDenied: [] },
  shown: [{ rule: "r", descriptor: "x=1", counts: { allowed: 1, denied: 2, shadow_denied: 3 } }],
  process: [],
};

const pool = (names = ["a"]): PooledReports =>
  new PooledReports({ workers: 3, names: () => names, outliving: (lists) => lists.flat() });

const allowedOf = (reports: PooledReports): number | undefined =>
  reports.figures().limits[0]?.tally.decisions[0];

describe("the reports of several workers", () => {
  it("add up what is counted, and what each sees a part of", () => {
    const reports = pool();
    reports.note(1, reportOf([limitOf("a", 10, { share: 0.1, unreconciled: 3, debt: 1 })]));
    reports.note(2, reportOf([limitOf("a", 5, { share: 0.3, unreconciled: 4, debt: 7 })]));
    expect(allowedOf(reports)).toBe(15);
    expect(reports.figures()).toMatchObject({
      trackedKeys: 10,
      evictedKeys: 2,
      lostTokens: 4,
      reconciled: { ok: 20, keys: 40 },
      limits: [{ name: "a", unreconciled: 7, debt: 7 }],
    });
    expect(reports.figures().limits[0]?.share).toBeCloseTo(0.4, 9);
  });

  it("count pods, of which each has so many workers, also while one is replaced", () => {
    const reports = pool();
    reports.note(1, reportOf([]));
    expect(reports.figures().pods).toBe(2);
    reports.note(1, reportOf([], {}, { pods: 7 }));
    expect(reports.figures().pods).toBe(2);
    reports.note(1, reportOf([], {}, { pods: 1 }));
    expect(reports.figures().pods).toBe(1);
  });

  it("tell of the worst off: a fallback of one is one, a store down for one is down", () => {
    const reports = pool();
    reports.note(1, reportOf([]));
    reports.note(2, reportOf([], {}, { fallbackActive: true, storeUp: false }));
    expect(reports.figures()).toMatchObject({ fallbackActive: true, storeUp: false });
  });

  it("keep what is known from a whole report while short ones come in", () => {
    const reports = pool();
    reports.note(1, reportOf([limitOf("a", 1, { share: 0.5, debt: 9 })], { details: DETAILS }));
    reports.note(1, reportOf([limitOf("a", 2)]));
    expect(reports.figures().limits[0]).toMatchObject({ share: 0.5, debt: 9 });
    expect(allowedOf(reports)).toBe(2);
    expect(reports.keys(10).busiest).toEqual([{ limit: "a", key: "k", perSecond: 4 }]);
  });

  it("never count back when a worker dies, and its successor begins at zero", () => {
    const reports = pool();
    const sums = { uds: { counts: new Float64Array(2), sumUs: 0 } };
    const exchanges = { counts: new Float64Array(2), sumUs: 0 };
    reports.note(1, reportOf([limitOf("a", 10)], { details: DETAILS }));
    reports.note(2, reportOf([limitOf("a", 10)], { details: DETAILS }));
    reports.retire(1);
    reports.note(3, reportOf([limitOf("a", 0)]));
    expect(allowedOf(reports)).toBe(20);
    expect(reports.figures()).toMatchObject({ evictedKeys: 3, reconciled: { ok: 30 } });
    expect(reports.figures().trackedKeys).toBe(10);
    expect(reports.forwardUnmatched).toBe(3);
    expect(reports.descriptors.unmatched).toBe(6);
    expect(reports.descriptors.shown).toEqual([
      { rule: "r", descriptor: "x=1", counts: { allowed: 2, denied: 4, shadow_denied: 6 } },
    ]);
    reports.fillDurations(sums, exchanges);
    reports.fillDurations(sums, exchanges);
    expect([...sums.uds.counts]).toEqual([9, 3]);
    expect(exchanges.sumUs).toBe(150);
  });

  it("forget a limit that is gone, as one process does", () => {
    const names = ["a"];
    const reports = pool(names);
    reports.note(1, reportOf([limitOf("a", 10)]));
    names.pop();
    reports.note(1, reportOf([]));
    expect(reports.figures().limits).toEqual([]);
    reports.retire(1);
    names.push("a");
    expect(allowedOf(reports)).toBe(0);
  });

  it("forget it also when no worker dies meanwhile", () => {
    const names = ["a"];
    const reports = pool(names);
    reports.note(1, reportOf([limitOf("a", 10)]));
    reports.retire(1);
    names.pop();
    expect(reports.figures().limits).toEqual([]);
    names.push("a");
    expect(allowedOf(reports)).toBe(0);
  });

  it("show a bounded number of descriptors, however many workers die, and count them all", () => {
    const reports = pool();
    for (let worker = 0; worker < 100; worker += 1) {
      const counts = { allowed: 1, denied: 0, shadow_denied: 0 };
      const shown = Array.from({ length: 100 }, (_, i) => {
        return { rule: i < 50 ? "r" : "s", descriptor: `x=${worker}.${i}`, counts };
      });
      reports.note(worker, reportOf([], { details: { ...DETAILS, shown } }));
      reports.retire(worker);
    }
    const { shown } = reports.descriptors;
    expect(shown.length).toBe(2_002);
    expect(shown.reduce((sum, { counts }) => sum + counts.allowed, 0)).toBe(10_000);
    const together = shown.filter(({ descriptor }) => descriptor === "other");
    expect(together.map(({ rule, counts }) => [rule, counts.allowed])).toEqual([
      ["r", 4_000],
      ["s", 4_000],
    ]);
  });

  it("rank keys by what all workers see of them", () => {
    const reports = pool();
    const keys = (k: number, other: number) => ({
      ...DETAILS,
      keys: {
        sampledEvery: 1,
        busiest: [
          { limit: "a", key: "other", perSecond: other },
          { limit: "a", key: "k", perSecond: k },
        ],
        mostDenied: [],
      },
    });
    reports.note(1, reportOf([], { details: keys(3, 5) }));
    reports.note(2, reportOf([], { details: keys(3, 0) }));
    expect(reports.keys(1).busiest).toEqual([{ limit: "a", key: "k", perSecond: 6 }]);
  });
});

describe("metrics of several processes", () => {
  const metric = (name: string, type: string, aggregator: string, value: number) => {
    return { name, help: "", type, aggregator, values: [{ labels: {}, value }] };
  };

  it.each([
    ["sum", 6],
    ["average", 3],
    ["max", 4],
    ["min", 2],
    ["omit", 2],
  ])("are put together as the library says: %s", (aggregator, value) => {
    const parts = [metric("m", "gauge", aggregator, 2), metric("m", "gauge", aggregator, 4)];
    expect(pooledMetric(parts).values).toEqual([{ labels: {}, value }]);
  });

  it("outlive their process when they only grow", () => {
    const lists = [
      [metric("cpu", "counter", "sum", 2), metric("rss", "gauge", "sum", 9)],
      [metric("cpu", "counter", "sum", 3)],
    ];
    expect(outlivingMetrics(lists)).toEqual([metric("cpu", "counter", "sum", 5)]);
  });
});
