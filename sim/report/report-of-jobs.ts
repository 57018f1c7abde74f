/** A report out of jobs that were done, for `npm run sim -- --out DIR`. */
import { aliquotScheme } from "../aliquot-scheme.ts";
import { faultToLine } from "../fault-plan.ts";
import { type JobDone, reproduction } from "../job.ts";
import { SCENARIOS, scenarioNamed } from "../scenario-table.ts";
import { SCHEMES } from "../scheme-table.ts";
import { planOf } from "../world.ts";
import type { Report, ReportedRun } from "./report-data.ts";

/** @param argv - Arguments of the command, for the heading. */
export function reportOfJobs(jobs: readonly JobDone[], argv: readonly string[]): Report {
  return {
    title: "Aliquot, simulated",
    command: ["npm run sim --", ...argv].join(" "),
    runs: inTableOrder(jobs).map(runOf),
  };
}

/** Workers finish in any order; a report must not depend on which was faster. */
function inTableOrder(jobs: readonly JobDone[]): readonly JobDone[] {
  const scenarios = SCENARIOS.map(({ name }) => name);
  // Ours comes first in the table of schemes, and the charts of a scenario are of its first scheme.
  const schemes = SCHEMES.map(({ name }) => name);
  return [...jobs].sort(
    ({ job: a }, { job: b }) =>
      scenarios.indexOf(a.scenario) - scenarios.indexOf(b.scenario) ||
      schemes.indexOf(a.scheme) - schemes.indexOf(b.scheme) ||
      a.seed - b.seed,
  );
}

function runOf({ job, result, verdicts }: JobDone): ReportedRun {
  const scenario = scenarioNamed(job.scenario);
  const plan = job.plan ?? planOf(scenario, job.seed);
  return {
    theme: scenario.theme,
    question: scenario.question,
    workload: scenario.workload.summary,
    plan: plan.map(faultToLine),
    repeat: reproduction(job),
    judged: job.scheme === aliquotScheme().name,
    verdicts,
    result,
  };
}
