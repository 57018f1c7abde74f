/** A small report with everything a report can hold: two schemes, two limits, faults, a failure. */
import { aliquotScheme } from "../../../sim/aliquot-scheme.ts";
import { INDEPENDENT } from "../../../sim/baselines/independent.ts";
import { type Fault, faultToLine } from "../../../sim/fault-plan.ts";
import type { Report, ReportedRun } from "../../../sim/report/report-data.ts";
import { limitOf, SECOND, scenarioOf } from "../../../sim/scenarios/scenario-of.ts";
import type { Scheme } from "../../../sim/scheme.ts";
import { excessAtMost, utilisationAtLeast } from "../../../sim/verdicts.ts";
import { even } from "../../../sim/workloads/even.ts";
import { manyLimits } from "../../../sim/workloads/many-limits.ts";
import { runScenario } from "../../../sim/world.ts";

const FAULTS: readonly Fault[] = [
  { kind: "join", atUs: 2 * SECOND, count: 3 },
  { kind: "partition", atUs: 3 * SECOND, forUs: SECOND, pods: [0, 1], way: "both" },
  { kind: "leave", atUs: 5 * SECOND, pods: [4] },
];

/** A name that would be markup if nobody escaped it. */
export const HOSTILE = `<script>alert("x")</script>`;

const SCENARIOS = [
  scenarioOf("test", {
    name: "busy",
    question: `Does ${HOSTILE} hold?`,
    pods: 4,
    durationUs: 6 * SECOND,
    limits: [limitOf({ rate: 200 })],
    workload: even({ perSecond: 600 }),
    faults: () => FAULTS,
    marks: [{ atUs: 2 * SECOND, name: "grown" }],
    verdicts: [utilisationAtLeast(0.5), excessAtMost(-1)],
  }),
  scenarioOf("test", {
    name: "two-limits",
    question: "Are both limits kept?",
    pods: 2,
    durationUs: 3 * SECOND,
    limits: [limitOf({ name: "a", rate: 100 }), limitOf({ name: HOSTILE, rate: 50 })],
    workload: manyLimits({ requestsPerSecond: 300, kinds: [[0, 1], [1]] }),
  }),
];

export async function sampleReport(): Promise<Report> {
  const runs: ReportedRun[] = [];
  for (const scenario of SCENARIOS) {
    for (const scheme of [aliquotScheme() as unknown as Scheme, INDEPENDENT]) {
      for (const seed of [1, 2]) {
        const result = await runScenario(scenario, scheme, seed);
        runs.push({
          theme: scenario.theme,
          question: scenario.question,
          workload: scenario.workload.summary,
          plan: scenario.faults(undefined as never).map(faultToLine),
          repeat: `npm run sim -- --scenario ${scenario.name}`,
          judged: scheme.name === "aliquot",
          verdicts: scenario.verdicts.map(({ promise, judge }) => ({ promise, ...judge(result) })),
          result,
        });
      }
    }
  }
  return { title: "A sample", command: "npm run sim -- --out DIR", runs };
}
