/** One run to be done somewhere: in this thread or in a worker. Plain data both ways. */
import { aliquotScheme } from "./aliquot-scheme.ts";
import { type Fault, faultToLine } from "./fault-plan.ts";
import type { RunResult } from "./run-result.ts";
import type { Judgement, Scenario } from "./scenario.ts";
import { scenarioNamed } from "./scenario-table.ts";
import type { Scheme } from "./scheme.ts";
import { ON_REDIS, schemeNamed } from "./scheme-table.ts";
import { planOf, runScenario } from "./world.ts";

export interface Job {
  readonly scenario: string;
  readonly scheme: string;
  readonly seed: number;
  /** Run it a second time and demand the same trace. */
  readonly twice: boolean;
  /** Run it on a real redis-server as well and demand the same trace. */
  readonly redis: boolean;
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
    const again = { scenario, seed: job.seed, faults, first: result };
    if (job.twice) verdicts.push(await sameTrace("the same seed", scheme, again));
    if (job.redis) verdicts.push(await sameTrace("a real Redis", ON_REDIS, again));
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

/** A run of the product, whose promises the verdicts are. */
export function isOurs(job: Job): boolean {
  return job.scheme === aliquotScheme().name || job.scheme === ON_REDIS.name;
}

/** The one line that repeats a run. */
export function reproduction(job: Job): string {
  const parts = ["npm run sim --", `--scenario ${job.scenario}`, `--seed ${job.seed}`];
  if (job.scheme !== aliquotScheme().name) parts.push(`--scheme ${job.scheme}`);
  if (job.plan !== undefined) parts.push(`--plan '${job.plan.map(faultToLine).join("; ")}'`);
  return parts.join(" ");
}

interface Again {
  readonly scenario: Scenario;
  readonly seed: number;
  readonly faults: readonly Fault[];
  readonly first: RunResult;
}

/** The trace holds every decision and every delivery, so equal traces are equal admissions. */
async function sameTrace(what: string, scheme: Scheme, again: Again): Promise<JudgedVerdict> {
  const { scenario, seed, faults, first } = again;
  const second = await runScenario(scenario, scheme, seed, { faults });
  const passed = second.traceHash === first.traceHash;
  const promise = `${what} gives the same trace (${first.traceHash}, ${second.traceHash})`;
  return { promise, passed, measured: passed ? 0 : 1, allowed: 0 };
}
