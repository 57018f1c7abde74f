/** The parts of the report: axes, numbers, files for programs, events in words. */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { exactAxis, linearAxis, magnitudeAxis } from "../../../sim/report/axis.ts";
import { toCsv, toJson } from "../../../sim/report/data-files.ts";
import { htmlPage } from "../../../sim/report/html-page.ts";
import { percent, shortNumber } from "../../../sim/report/numbers.ts";
import { byScenario, type Report } from "../../../sim/report/report-data.ts";
import { maxima, means, rates, spansOf } from "../../../sim/report/series.ts";
import { writeReport } from "../../../sim/report/write-report.ts";
import { HOSTILE, sampleReport } from "./sample-report.ts";

let report: Report;

beforeAll(async () => {
  report = await sampleReport();
});

describe("axes", () => {
  test.each([
    [3_085, 4, [0, 1000, 2000, 3000, 4000]],
    [264, 3, [0, 100, 200, 300]],
    [1, 2, [0, 0.5, 1]],
    [0, 2, [0, 0.5, 1]],
  ])("up to %d has round ticks", (most, count, ticks) => {
    const axis = linearAxis(most, count);
    expect(axis.ticks).toEqual(ticks);
    expect(axis.place(axis.most)).toBe(1);
    expect(axis.place(2 * axis.most)).toBe(1);
  });

  test("time ends where the run ends", () => {
    expect(exactAxis(30, 5).ticks).toEqual([0, 10, 20, 30]);
    expect(exactAxis(7, 5).place(7)).toBe(1);
  });

  test("magnitudes are equally far apart, and nothing is at the very bottom", () => {
    const axis = magnitudeAxis(55_000, 10);
    expect(axis.ticks).toEqual([0, 10, 100, 1_000, 10_000, 100_000]);
    expect(axis.place(0)).toBe(0);
    expect(axis.place(100) - axis.place(10)).toBeCloseTo(axis.place(10_000) - axis.place(1_000), 9);
    expect(axis.place(100_000)).toBe(1);
  });
});

test.each([
  [0, "0"],
  [0.0042, "0.0042"],
  [0.194, "0.19"],
  [19.34, "19.3"],
  [29_132.4, "29\u202f132"],
  [Number.POSITIVE_INFINITY, "never"],
  [Number.NaN, "–"],
])("%d is written %s", (value, text) => {
  expect(shortNumber(value)).toBe(text);
});

test("parts are percentages with one digit where it matters", () => {
  expect([percent(0.996), percent(1.5), percent(-0.02)]).toEqual(["99.6 %", "150 %", "-2.0 %"]);
});

test("series keep their sums, their peaks and their last, shorter piece", () => {
  expect(rates([1, 2, 3, 4, 5], 2)).toEqual([15, 35, 50]);
  expect(maxima([1, 9, 3, 4, 5], 2)).toEqual([9, 4, 5]);
  expect(means([1, 2, 3, 4, 5], 2)).toEqual([1.5, 3.5, 5]);
});

test("events are put into words once, with how long they last", () => {
  const result = report.runs[0]?.result;
  if (result === undefined) throw new Error("no run");
  expect(spansOf(result)).toEqual([
    { from: 2, to: 2, label: "2 s: join count=3" },
    { from: 3, to: 4, label: "3 s: partition pods=0-1 for=1s way=both" },
    { from: 5, to: 5, label: "5 s: leave pods=4" },
  ]);
});

test("pods that an autoscaler starts at one instant are one event", () => {
  const result = report.runs[0]?.result;
  if (result === undefined) throw new Error("no run");
  const joins = [7, 8, 9].map((pod) => ({ atUs: 1e6, kind: "join" as const, text: `pod ${pod}` }));
  expect(spansOf({ ...result, events: joins })).toEqual([
    { from: 1, to: 1, label: "1 s: 3 pods: join" },
  ]);
});

test("JSON holds every run, and CSV a row per limit of each", () => {
  const json = JSON.parse(toJson(report)) as Report;
  expect(json.runs).toHaveLength(8);
  expect(json.runs[0]?.result.limits[0]?.admitted).toBe(report.runs[0]?.result.limits[0]?.admitted);
  const [header = "", ...rows] = toCsv(report).trimEnd().split("\n");
  expect(rows).toHaveLength(4 + 2 * 4);
  expect(header).toContain("scenario,scheme,seed,limit,rate,burst");
  expect(header).toContain("over_admission_0.1s,over_admission_1s");
  expect(rows[0]).toMatch(/^busy,aliquot,1,api,200,200,1,6,/);
  expect(rows.join("\n")).toContain('"<script>alert(""x"")</script>"');
});

test("what never settles is null in JSON, which has no infinity", () => {
  const [run] = report.runs;
  if (run === undefined) throw new Error("no run");
  const never = { name: "m", atUs: 0, settledAfterUs: Number.POSITIVE_INFINITY };
  const settling = [{ ...never, overshoot: 1, late: 0 }];
  const text = toJson({ ...report, runs: [{ ...run, result: { ...run.result, settling } }] });
  expect(text).toContain('"settledAfterUs":null');
});

test("the worst seed of a scheme is the one nearest to its bound", () => {
  const [busy] = byScenario(report.runs);
  expect(busy?.bySchemes.map(({ scheme }) => scheme)).toEqual(["aliquot", "independent"]);
  for (const { runs, worst } of busy?.bySchemes ?? []) {
    const excess = Math.max(...runs.map(({ result }) => result.limits[0]?.excess ?? 0));
    expect(worst.result.limits[0]?.excess).toBe(excess);
  }
});

test("the page needs nothing else, and names are text in it", () => {
  const page = htmlPage(report);
  expect(page).not.toContain(HOSTILE);
  expect(page).toContain("&lt;script&gt;");
  expect(page).not.toMatch(/<script|<link[^>]+href="(?!data:)|@import|url\(|https?:/);
  expect(page).toContain("fails");
  expect(page).toContain("not judged");
});

test("three files are written, into a folder that need not be there", async () => {
  const folder = await mkdtemp(join(tmpdir(), "aliquot-report-"));
  try {
    const paths = await writeReport(join(folder, "new", "deep"), report);
    expect(await readdir(join(folder, "new", "deep"))).toHaveLength(3);
    expect(await readFile(paths[2] ?? "", "utf8")).toMatch(/^<!doctype html>/);
  } finally {
    await rm(folder, { recursive: true });
  }
});
