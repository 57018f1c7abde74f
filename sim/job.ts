/** One run to be done somewhere: in this thread or in a worker. Plain data both ways. */
import { aliquotScheme } from "./aliquot-scheme.ts";
import { type Fault, faultToLine } from "./fault-plan.ts";
import type { RunResult } from "./run-result.ts";
import type { Judgement, Scenario } from "./scenario.ts";
import { scenarioNamed } from "./scenario-table.ts";
import type { Scheme } from "./scheme.ts";
import { schemeNamed } from "./scheme-table.ts";
import { planOf, runScenario } from "./world.ts";

export interface Job {
  readonly scenario: string;
  readonly scheme: string;
  readonly seed: number;
  /** Run it a second time and demand the same trace. */
  readonly twice: boolean;
  /** In place of the scenario's own plan. */
  readonly plan: readonly Fault[] | undefined;
}

export interface JudgedVerdict extends Judgement {
  readonly promise: string;
}

export interface JobDone {
  readonly job: Job;
  readonly result: RunResult;
  readonly verdicts: readonly JudgedVerdict[];
  readonly passed: boolean;
}

/** Runs a job; what a run throws is a bug of the engine or of the simulator and comes through. */
export async function doJob(job: Job): Promise<JobDone> {
  const scenario = scenarioNamed(job.scenario);
  const scheme = schemeNamed(job.scheme);
  const faults = job.plan ?? planOf(scenario, job.seed);
  try {
    const result = await runScenario(scenario, scheme, job.seed, { faults });
    const verdicts = judge(scenario, result);
    if (job.twice) verdicts.push(await sameAgain(scenario, scheme, job.seed, faults, result));
    return { job, result, verdicts, passed: verdicts.every((verdict) => verdict.passed) };
  } catch (error) {
    throw new Error(`${reproduction(job)} threw`, { cause: error });
  }
}

export function judge(scenario: Scenario, result: RunResult): JudgedVerdict[] {
  return scenario.verdicts.map((verdict) => ({
    promise: verdict.promise,
    ...verdict.judge(result),
  }));
}

/** The one line that repeats a run. */
export function reproduction(job: Job): string {
  const parts = ["npm run sim --", `--scenario ${job.scenario}`, `--seed ${job.seed}`];
  if (job.scheme !== aliquotScheme().name) parts.push(`--scheme ${job.scheme}`);
  if (job.plan !== undefined) parts.push(`--plan '${job.plan.map(faultToLine).join("; ")}'`);
  return parts.join(" ");
}

async function sameAgain(
  scenario: Scenario,
  scheme: Scheme,
  seed: number,
  faults: readonly Fault[],
  first: RunResult,
): Promise<JudgedVerdict> {
  const again = await runScenario(scenario, scheme, seed, { faults });
  const passed = again.traceHash === first.traceHash;
  const promise = `the same seed gives the same trace (${first.traceHash}, ${again.traceHash})`;
  return { promise, passed, measured: passed ? 0 : 1, allowed: 0 };
}
