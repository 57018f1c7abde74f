/**
 * Every baseline behaves as its kind is known to: the rows of the published comparison (20 pods,
 * r = 1000/s, b = 1000) as ranges, so that a baseline that is built wrongly cannot make ours shine.
 */
import { beforeAll, describe, expect, test } from "vitest";
import { aliquotScheme } from "../../../sim/aliquot-scheme.ts";
import { ABLATED, BASELINES } from "../../../sim/baselines/baseline-table.ts";
import type { Fault } from "../../../sim/fault-plan.ts";
import type { RunResult } from "../../../sim/run-result.ts";
import type { Scenario } from "../../../sim/scenario.ts";
import { podRange, SECOND, scenarioOf } from "../../../sim/scenarios/scenario-of.ts";
import type { Scheme } from "../../../sim/scheme.ts";
import { bursts } from "../../../sim/workloads/bursts.ts";
import { even } from "../../../sim/workloads/even.ts";
import { loneHotPod } from "../../../sim/workloads/lone-hot-pod.ts";
import { runScenario } from "../../../sim/world.ts";

const SCHEMES = [...BASELINES, ...ABLATED, aliquotScheme() as unknown as Scheme];

function schemeOf(name: string): Scheme {
  const scheme = SCHEMES.find((each) => each.name === name);
  if (scheme === undefined) throw new Error(`no scheme ${name}`);
  return scheme;
}

const SHORT = { durationUs: 10 * SECOND, question: "" };
const SCENARIOS = {
  even: { ...SHORT, name: "even", workload: even({ perSecond: 2000 }) },
  hot: { ...SHORT, name: "hot", workload: loneHotPod({ perSecond: 2000 }) },
  burst: {
    ...SHORT,
    name: "burst",
    workload: bursts({ perSecond: 10_000, onUs: SECOND, everyUs: 10 * SECOND }),
  },
};
type Load = keyof typeof SCENARIOS;

interface Figures {
  readonly excess: number;
  readonly use: number;
  readonly calls: number;
}

function figuresOf(result: RunResult): Figures {
  const [limit] = result.limits;
  return {
    excess: limit?.excess ?? Number.NaN,
    use: limit?.utilisation ?? Number.NaN,
    calls: result.cost.callsPerAdmit,
  };
}

async function run(scheme: string, load: Load, given: Partial<Scenario> = {}): Promise<RunResult> {
  return runScenario(scenarioOf("test", { ...SCENARIOS[load], ...given }), schemeOf(scheme), 1);
}

/** [scheme, load, excess from..to, use from..to, store calls per admitted token from..to]. */
type Range = readonly [number, number];
type Row = readonly [scheme: string, load: Load, excess: Range, use: Range, calls: Range];

const NONE: Range = [0, 3];
const ROWS: readonly Row[] = [
  // Twenty pods have the limit twenty times: what is offered passes.
  ["independent", "even", [8_000, 10_000], [1.7, 2], [0, 0]],
  ["independent", "hot", NONE, [0.99, 1.001], [0, 0]],
  ["independent", "burst", [7_000, 9_000], [4.5, 5.5], [0, 0]],
  // An equal part is right for even load and a twentieth of the limit for a lone hot pod.
  ["static-share", "even", NONE, [0.98, 1], [0, 0]],
  ["static-share", "hot", NONE, [0.049, 0.055], [0, 0]],
  ["static-share-whole-burst", "even", [8_000, 19_500], [1.6, 2], [0, 0]],
  // A central bucket is exact and costs a trip per request, admitted or not.
  ["central-token-bucket", "even", NONE, [0.99, 1.001], [1.7, 2]],
  ["central-token-bucket", "burst", NONE, [0.99, 1.01], [4.5, 5.5]],
  ["central-gcra", "even", NONE, [0.99, 1.001], [1.7, 2]],
  ["central-leaky-bucket", "even", [0, 5], [0.99, 1.01], [1.7, 2]],
  // Counting spans do not save up: half of what a rested bucket admits in a burst.
  ["central-fixed-window", "burst", NONE, [0.45, 0.6], [9, 11]],
  ["central-sliding-log", "burst", NONE, [0.45, 0.6], [9, 11]],
  ["central-sliding-counter", "burst", NONE, [0.45, 0.6], [9, 11]],
  // Spending the last seen remaining: every pod spends the same tokens in a burst.
  ["remaining-copy", "even", [40, 300], [0.98, 1.02], [0.1, 0.25]],
  ["remaining-copy", "burst", [600, 1_200], [1.03, 1.6], [0.02, 1]],
  // A ratio learns of a burst late, and is 10 % too strict for a lone pod that reports in lumps.
  ["drop-ratio", "burst", [1_000, 2_000], [1.3, 1.9], [0.02, 1]],
  ["drop-ratio", "hot", [0, 50], [0.85, 0.96], [0.005, 0.25]],
  // Ours: nearly exact, nearly all of it used, a fifth of a call per token.
  ["aliquot", "even", [0, 20], [0.99, 1.001], [0.1, 0.3]],
  ["aliquot", "hot", NONE, [0.99, 1.001], [0.01, 0.08]],
  ["aliquot", "burst", [0, 60], [0.98, 1.02], [0.05, 0.6]],
];

describe("excess, use of the limit and store calls per admitted token", () => {
  test.each(ROWS)("%s under %s load", async (scheme, load, excess, use, calls) => {
    const figures = figuresOf(await run(scheme, load));
    expect(figures.excess).toBeGreaterThanOrEqual(excess[0]);
    expect(figures.excess).toBeLessThanOrEqual(excess[1]);
    expect(figures.use).toBeGreaterThanOrEqual(use[0]);
    expect(figures.use).toBeLessThanOrEqual(use[1]);
    expect(figures.calls).toBeGreaterThanOrEqual(calls[0]);
    expect(figures.calls).toBeLessThanOrEqual(calls[1]);
  });
});

describe("20 pods become 60 and then 10, offered 3 r", () => {
  const faults: readonly Fault[] = [
    { kind: "join", atUs: 5 * SECOND, count: 40 },
    { kind: "crash", atUs: 10 * SECOND, pods: podRange(10, 60) },
  ];
  const results: Map<string, RunResult> = new Map();
  const excessOf = (name: string): number => results.get(name)?.limits[0]?.excess ?? Number.NaN;
  /** Tokens per second in the first second after an instant. */
  const rateAfter = (name: string, second: number): number => {
    const series = results.get(name)?.limits[0]?.admittedSeries ?? [];
    return series.slice(second * 10, second * 10 + 10).reduce((sum, tokens) => sum + tokens, 0);
  };

  beforeAll(async () => {
    const given = { workload: even({ perSecond: 3000 }), durationUs: 14 * SECOND };
    for (const name of ["static-share-0.5s", "static-share-2s", "static-share-held", "aliquot"]) {
      results.set(name, await run(name, "even", { ...given, faults: () => faults }));
    }
  });

  test("a static share is over by what it learns late, and starves when pods die", () => {
    expect(excessOf("static-share-0.5s")).toBeGreaterThan(1_300);
    expect(excessOf("static-share-0.5s")).toBeLessThan(1_800);
    expect(excessOf("static-share-2s")).toBeGreaterThan(3_500);
    expect(rateAfter("static-share-2s", 5)).toBeGreaterThan(2_500);
    expect(rateAfter("static-share-0.5s", 10)).toBeLessThan(700);
    expect(rateAfter("static-share-held", 10)).toBeLessThan(250);
  });

  test("ours is not", () => {
    expect(excessOf("aliquot")).toBeLessThan(100);
    expect(rateAfter("aliquot", 5)).toBeLessThan(1_100);
    expect(rateAfter("aliquot", 10)).toBeGreaterThan(900);
  });
});

describe("each part of our rule is there for something", () => {
  const load = { workload: even({ perSecond: 10_000 }), durationUs: 5 * SECOND };

  test("without it a burst is several times over what the whole rule lets", async () => {
    const excess = async (name: string): Promise<number> =>
      figuresOf(await run(name, "burst", load)).excess;
    const whole = await excess("aliquot");
    expect(whole).toBeLessThan(60);
    expect(await excess("aliquot-no-ledger")).toBeGreaterThan(2 * whole);
    expect(await excess("aliquot-no-reserve")).toBeGreaterThan(2 * whole);
    expect(await excess("aliquot-gain-1-bare")).toBeGreaterThan(5 * whole);
  });

  test("twice the gain alone is caught by the ledger", async () => {
    const result = await run("aliquot-gain-0.7", "even", load);
    expect(figuresOf(result).use).toBeGreaterThan(0.99);
    expect(figuresOf(result).excess).toBeLessThan(60);
    expect(result.violations).toEqual([]);
  });
});
