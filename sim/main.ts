/**
 * Runs scenarios and says what of the promises held.
 *
 * Exit codes: 0 all verdicts passed, 1 some failed, 2 the command line makes no sense.
 */
import { aliquotScheme } from "./aliquot-scheme.ts";
import { type Arguments, parseArguments, USAGE } from "./arguments.ts";
import { faultToLine } from "./fault-plan.ts";
import { doJob, isOurs, type Job, type JobDone, reproduction } from "./job.ts";
import { doJobs } from "./job-pool.ts";
import { reportOfJobs } from "./report/report-of-jobs.ts";
import { writeReport } from "./report/write-report.ts";
import type { Scenario } from "./scenario.ts";
import { SCENARIOS, scenarioNamed } from "./scenario-table.ts";
import { SCHEMES, schemeNamed } from "./scheme-table.ts";
import { shrinkPlan } from "./shrink.ts";
import { failure, heading, ProgressBar, row } from "./table-report.ts";
import { planOf } from "./world.ts";

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function main(argv: readonly string[]): Promise<number> {
  let given: Arguments;
  let jobs: Job[];
  try {
    given = parseArguments(argv);
    jobs = jobsOf(given);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
    return 2;
  }
  if (given.help) {
    print(USAGE);
    return 0;
  }
  if (given.list) {
    list();
    return 0;
  }
  const startedMs = performance.now();
  const done = await runAll(jobs, given);
  if (given.out !== undefined) {
    for (const path of await writeReport(given.out, reportOfJobs(done, argv))) print(path);
  }
  // Our promises are not the baselines': what those miss is a finding, no failure.
  const failed = done.filter((run) => !run.passed && isOurs(run.job));
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  print(`\n${done.length} runs in ${seconds} s, ${failed.length} failed`);
  if (given.shrink) for (const run of failed.slice(0, 3)) await shrink(run);
  return failed.length === 0 ? 0 : 1;
}

function jobsOf(given: Arguments): Job[] {
  const schemes = given.schemes.length > 0 ? given.schemes : [aliquotScheme().name];
  for (const scheme of schemes) schemeNamed(scheme);
  const chosen = given.scenarios.length > 0 ? given.scenarios.flatMap(matching) : SCENARIOS;
  const scenarios = given.ci ? chosen.filter((scenario) => scenario.tags.includes("ci")) : chosen;
  return scenarios.flatMap((scenario) =>
    schemes.flatMap((scheme) =>
      (given.seeds.length > 0 ? given.seeds : scenario.seeds).map((seed) => ({
        scenario: scenario.name,
        scheme,
        seed,
        twice: given.twice,
        redis: given.redis,
        plan: given.plan,
      })),
    ),
  );
}

function matching(name: string): readonly Scenario[] {
  if (!name.endsWith("*")) return [scenarioNamed(name)];
  return SCENARIOS.filter((scenario) => scenario.name.startsWith(name.slice(0, -1)));
}

/** Rows come in the order of the table, each as soon as all its seeds are done. */
async function runAll(jobs: readonly Job[], given: Arguments): Promise<JobDone[]> {
  if (jobs.length === 1) announce(jobs[0] as Job);
  print(`seeds: ${[...new Set(jobs.map((job) => job.seed))].join(", ")}`);
  print(heading());
  const terminal = process.stdout.isTTY;
  const bar = new ProgressBar(
    jobs.length,
    terminal ? (text) => void process.stdout.write(text) : undefined,
  );
  const groups: Map<string, { wanted: number; runs: JobDone[] }> = new Map();
  for (const job of jobs) {
    const group = groups.get(groupOf(job)) ?? { wanted: 0, runs: [] };
    group.wanted += 1;
    groups.set(groupOf(job), group);
  }
  const waiting = [...groups.values()];
  const done: JobDone[] = [];
  bar.draw();
  await doJobs(jobs, (run) => {
    done.push(run);
    groups.get(groupOf(run.job))?.runs.push(run);
    bar.clear();
    while (waiting[0] !== undefined && waiting[0].runs.length === waiting[0].wanted) {
      printGroup(waiting[0].runs, given);
      waiting.shift();
    }
    bar.advance();
  });
  bar.clear();
  return done;
}

function groupOf(job: Job): string {
  return `${job.scenario} ${job.scheme}`;
}

function printGroup(runs: JobDone[], given: Arguments): void {
  runs.sort((a, b) => a.job.seed - b.job.seed);
  print(row(runs));
  for (const run of runs) if (!run.passed && isOurs(run.job)) print(failure(run));
  if (given.seeds.length !== 1 || runs.length !== 1) return;
  for (const { promise, measured, allowed, passed } of runs[0]?.verdicts ?? []) {
    print(`    ${passed ? "ok  " : "FAIL"} ${promise}: ${measured.toPrecision(5)} (${allowed})`);
  }
}

function announce(job: Job): void {
  const scenario = scenarioNamed(job.scenario);
  print(`${scenario.name}: ${scenario.question}`);
  print(`seed ${job.seed}, ${scenario.pods} pods, ${scenario.workload.summary}`);
  for (const fault of job.plan ?? planOf(scenario, job.seed)) print(`  ${faultToLine(fault)}`);
}

function list(): void {
  for (const scenario of SCENARIOS) {
    const tags = scenario.tags.length > 0 ? ` [${scenario.tags.join(", ")}]` : "";
    print(`${scenario.name.padEnd(32)} ${scenario.question}${tags}`);
  }
  print("\nschemes");
  for (const scheme of SCHEMES) print(`${scheme.name.padEnd(32)} ${scheme.rule}`);
}

/** The plan gets smaller for as long as the first promise that failed still fails. */
async function shrink(run: JobDone): Promise<void> {
  const broken = run.verdicts.find((verdict) => !verdict.passed)?.promise;
  const plan = run.job.plan ?? planOf(scenarioNamed(run.job.scenario), run.job.seed);
  print(`\nshrinking ${plan.length} faults of ${reproduction(run.job)}`);
  const smallest = await shrinkPlan(plan, async (candidate) => {
    const trial = await doJob({ ...run.job, twice: false, redis: false, plan: candidate });
    return trial.verdicts.some((verdict) => verdict.promise === broken && !verdict.passed);
  });
  print(`${smallest.length} faults are enough for "${broken}":`);
  for (const fault of smallest) print(`  ${faultToLine(fault)}`);
  print(`repeat: ${reproduction({ ...run.job, plan: smallest })}`);
}

process.exitCode = await main(process.argv.slice(2));
