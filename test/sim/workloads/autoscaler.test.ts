/** The model of the Kubernetes autoscaler, by the examples of its documentation. */
import { describe, expect, test } from "vitest";
import { type HorizontalPodAutoscaler, horizontalPodAutoscaler } from "../../../sim/autoscaler.ts";
import { INDEPENDENT } from "../../../sim/baselines/independent.ts";
import { limitOf, SECOND, scenarioOf } from "../../../sim/scenarios/scenario-of.ts";
import { bursts } from "../../../sim/workloads/bursts.ts";
import { runScenario } from "../../../sim/world.ts";

const RULES: HorizontalPodAutoscaler = { minPods: 2, maxPods: 20, targetPerPod: 100 };

/** [second, pods, requests per second, wanted]. */
type Look = readonly [second: number, pods: number, load: number, wanted: number];

function wishes(rules: Partial<HorizontalPodAutoscaler>, looks: readonly Look[]): Look[] {
  const run = horizontalPodAutoscaler({ ...RULES, ...rules }).start();
  return looks.map(([second, pods, requestsPerSecond]) => {
    const wanted = run.wanted({ nowUs: second * SECOND, pods, requestsPerSecond });
    return [second, pods, requestsPerSecond, wanted];
  });
}

describe("how many pods are wanted", () => {
  test.each<[string, Partial<HorizontalPodAutoscaler>, Look[]]>([
    ["twice the target doubles the pods", {}, [[15, 4, 800, 8]]],
    ["fractions round up", {}, [[15, 4, 501, 6]]],
    ["within a tenth of the target nothing changes", {}, [[15, 4, 439, 4]]],
    ["never more than the most", {}, [[15, 4, 9_000, 20]]],
    [
      "scaling down waits for the most that was wanted within five minutes",
      {},
      [
        [15, 4, 800, 8],
        [30, 8, 100, 8],
        [314, 8, 100, 8],
        [316, 8, 100, 2],
      ],
    ],
    ["without that span it is immediate", { downUs: 0 }, [[15, 8, 400, 4]]],
    [
      "scaling up may wait for the least that was wanted",
      { upUs: 60 * SECOND },
      [
        [15, 4, 400, 4],
        [30, 4, 800, 4],
        [76, 4, 800, 8],
      ],
    ],
    ["a fleet without a pod gets the least", {}, [[15, 0, 0, 2]]],
  ])("%s", (_, rules, looks) => {
    expect(wishes(rules, looks)).toEqual(looks);
  });

  test("nonsense is refused", () => {
    expect(() => horizontalPodAutoscaler({ ...RULES, maxPods: 1 })).toThrow(RangeError);
  });
});

test("a fleet follows its load up and, later, down", async () => {
  const scenario = scenarioOf("test", {
    name: "hpa",
    question: "",
    pods: 2,
    durationUs: 40 * SECOND,
    limits: [limitOf({})],
    workload: bursts({
      perSecond: 1000,
      offPerSecond: 100,
      onUs: 20 * SECOND,
      everyUs: 60 * SECOND,
    }),
    autoscaler: horizontalPodAutoscaler({
      ...RULES,
      periodUs: 2 * SECOND,
      startupUs: SECOND,
      downUs: 5 * SECOND,
    }),
  });
  const { fleet } = await runScenario(scenario, INDEPENDENT, 1);
  expect(fleet.podsSeries[0]).toBe(2);
  expect(Math.max(...fleet.podsSeries)).toBeGreaterThanOrEqual(10);
  expect(Math.max(...fleet.podsSeries)).toBeLessThanOrEqual(12);
  expect(fleet.podsSeries.at(-1)).toBe(2);
});
