/** A user's scenario file: what is read, and what is said about what cannot be. */
import { describe, expect, test } from "vitest";
import { limitOf } from "../../../sim/scenarios/scenario-of.ts";
import { readScenario } from "../../../sim/simulate/read-scenario.ts";
import { formatProblem } from "../../../src/config/problem.ts";

const LIMITS = [limitOf({ name: "api" }), limitOf({ name: "llm" })];
const LOAD = "load: [{ limit: api, rate: 10/s }]\n";

function problemsOf(text: string): string[] {
  return (readScenario("s.yaml", text, LIMITS).problems ?? []).map(formatProblem);
}

test("a short file is a whole scenario", () => {
  const { scenario, problems } = readScenario("s.yaml", `duration: 5s\npods: 3\n${LOAD}`, LIMITS);
  expect(problems).toBeUndefined();
  expect(scenario).toMatchObject({
    duration: 5_000_000,
    pods: 3,
    seed: 1,
    round_trip: 4_000,
    plan: [],
    load: [{ limit: "api", rate: { tokens: 10, spanUs: 1_000_000 } }],
  });
});

test("faults come in order of time, whatever order they are written in", () => {
  const faults = "faults: [3s store-empty, 1s crash pods=0]\n";
  const { scenario } = readScenario("s.yaml", `duration: 5s\npods: 3\n${LOAD}${faults}`, LIMITS);
  expect(scenario?.plan.map(({ kind }) => kind)).toEqual(["crash", "store-empty"]);
});

describe("each problem names its line and what would be accepted", () => {
  const HEAD = "duration: 5s\npods: 3\n";

  test.each([
    ["", "must be a map with duration"],
    ["duration: 5s\n", "load: is missing"],
    [`duration: 5s\n${LOAD}`, "needs pods, such as pods: 20, or an autoscaler"],
    [`duration: soon\npods: 3\n${LOAD}`, "s.yaml:1:11: duration: must be a duration"],
    [`duration: 5s\npods: 0\n${LOAD}`, "s.yaml:2:7: pods: must be a whole number from 1"],
    [`duration: 5s\npod: 3\n${LOAD}`, "s.yaml:2:1: pod: unknown field; did you mean pods?"],
    [`${HEAD}load: []\n`, "load: must be a list of 1 to 100 items"],
    [`${HEAD}load: [{ limit: apj, rate: 1/s }]\n`, "is no limit of the configuration; did you"],
    [`${HEAD}load: [{ limit: zzz, rate: 1/s }]\n`, "there are api, llm"],
    [`${HEAD}load: [{ limit: api }]\n`, "s.yaml:3:8: load[0]: needs rate"],
    [`${HEAD}load: [{ rate: 1/s }]\n`, "needs limit: one of api, llm"],
    [`${HEAD}load: [{ limit: api, rate: 0.5/s }]\n`, "write 1/2s"],
    [`${HEAD}load: [{ limit: api, rate: 1/s, shape: wavy }]\n`, "must be even, hot-pod"],
    [`${HEAD}load: [{ limit: api, rate: 1/s, shape: bursts }]\n`, "shape bursts needs every"],
    [`${HEAD}load: [{ limit: api, rate: 1/s, shape: aligned }]\n`, "needs every"],
    [
      `${HEAD}load: [{ limit: api, rate: 1/s, clients: 3 }]\n`,
      "rate: has no meaning beside clients",
    ],
    [`${HEAD}load: [{ limit: api, rate: 1/s, think: 1s }]\n`, "think: has no meaning beside rate"],
    [`${HEAD}load: [{ trace: a.csv, limit: api }]\n`, "limit: has no meaning beside trace"],
    [`${HEAD}load: [{ limit: api, rate: 1/s, keys: 3, key: a }]\n`, "may not stand beside keys"],
    [
      `${HEAD}load: [{ limit: api, rate: 1/s, cost: { from: 5, to: 5 } }]\n`,
      "must be more than from, 5",
    ],
    [`${HEAD}load: [{ limit: api, rate: 1/s, cost: 0 }]\n`, "cost: must be a whole number from 1"],
    [`${HEAD}load: [{ limit: api, rate: 9000000/s }]\n`, "about 45 million requests"],
    [`${HEAD}${LOAD}faults: [9s store-empty]\n`, "must begin within the 5 s of the run"],
    [`${HEAD}${LOAD}faults: [1s store-emty]\n`, "s.yaml:4:10: faults[0]:"],
    [`${HEAD}${LOAD}faults: [1s config set=0 over=1s]\n`, "cannot be simulated"],
    [`${HEAD}autoscaler: { min: 2, max: 4, requests_per_pod: 5 }\n${LOAD}`, "may not stand beside"],
    [
      `duration: 5s\nautoscaler: { min: 4, max: 2, requests_per_pod: 5 }\n${LOAD}`,
      "must be at least min, 4",
    ],
    [
      `duration: 5s\nautoscaler: { min: 1, max: 2, request_per_pod: 5 }\n${LOAD}`,
      "did you mean requests_per_pod?",
    ],
    [`${HEAD}load: [\n`, "is not valid YAML"],
  ])("%j", (text, says) => {
    expect(problemsOf(text).join("\n")).toContain(says);
  });

  test("all of them at once", () => {
    const text = `duration: 5s\n${"load: [{ limit: zzz, rate: 1/s, shape: bursts }]\n"}`;
    expect(problemsOf(text)).toHaveLength(4);
  });
});
