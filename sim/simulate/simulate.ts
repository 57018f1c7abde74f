/**
 * `aliquot simulate`: a user's configuration under a user's scenario, by the engine that would run
 * in their pods.
 */
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Config } from "../../src/config/config.ts";
import type { Problem } from "../../src/config/problem.ts";
import { PodLimiter } from "../../src/core/pod-limiter.ts";
import { aliquotScheme } from "../aliquot-scheme.ts";
import { faultToLine } from "../fault-plan.ts";
import type { Report } from "../report/report-data.ts";
import { writeReport } from "../report/write-report.ts";
import type { RunResult } from "../run-result.ts";
import type { Scenario } from "../scenario.ts";
import type { Scheme } from "../scheme.ts";
import type { Arrival } from "../workload.ts";
import { parseTrace } from "../workloads/csv-replay.ts";
import { runScenario } from "../world.ts";
import { buildScenario, type Traces, timingOf } from "./build-scenario.ts";
import { withBounds } from "./limit-mode.ts";
import { addedOutage, outageFault, plannedOutage } from "./outage.ts";
import { readScenario, type UserScenario } from "./read-scenario.ts";
import { type Findings, fleetLines, holds, limitLines, type OutageRun } from "./user-verdict.ts";

export interface SimulateRequest {
  readonly config: Config;
  /** The scenario file as it was named, and its text. */
  readonly path: string;
  readonly text: string;
  /** In place of the scenario's own. */
  readonly seed: number | undefined;
  /** Folder for JSON, CSV and report.html. */
  readonly out: string | undefined;
}

export type Simulated =
  | { readonly problems: readonly Problem[]; readonly holds?: undefined }
  | { readonly problems?: undefined; readonly holds: boolean };

/** @param print - Gets the report line by line, the first lines before the run. */
export async function simulate(
  request: SimulateRequest,
  print: (line: string) => void,
): Promise<Simulated> {
  const { config, path, text } = request;
  const read = readScenario(path, text, config.limits);
  if (read.scenario === undefined) return { problems: read.problems };
  const user = { ...read.scenario, seed: request.seed ?? read.scenario.seed };
  const traces = await readTraces(user, path, config);
  if (Array.isArray(traces)) return { problems: traces };
  const scenario = buildScenario(config, user, traces as Traces, path);
  for (const line of preface(config, user, scenario)) print(line);
  const found = await findOut(config, user, scenario);
  const { result } = found;
  for (const [i, limit] of scenario.limits.entries()) {
    for (const line of ["", ...limitLines(limit, i, found)]) print(line);
  }
  for (const line of ["", ...fleetLines(result)]) print(line);
  if (request.out !== undefined) {
    const paths = await writeReport(request.out, reportOf(request, user, scenario, found));
    for (const file of paths) print(file);
  }
  return { holds: scenario.limits.every((limit, i) => holds(limit, i, found)) };
}

async function findOut(config: Config, user: UserScenario, scenario: Scenario): Promise<Findings> {
  const timing = timingOf(config);
  const engines: PodLimiter[] = [];
  const scheme = aliquotScheme({
    timing,
    engine(options, nowUs) {
      const engine = new PodLimiter(options, nowUs);
      engines.push(engine);
      return engine;
    },
  }) as unknown as Scheme;
  const { limits } = scenario;
  const measured = await runScenario(scenario, scheme, user.seed);
  const [last] = engines.slice(-1);
  const standings = last === undefined ? [] : limits.map((limit) => last.standing(limit));
  const setting = { ...timing, roundTripUs: user.round_trip };
  const result = withBounds(measured, limits, standings, setting);
  const outageRun = await runOutage(scenario, scheme, user, result);
  return { result, standings, outageRun, isFaultless: user.plan.length === 0 };
}

function preface(config: Config, user: UserScenario, scenario: Scenario): string[] {
  const fleet = scenario.autoscaler?.summary ?? `${scenario.pods} pods`;
  const lines = [
    `${fleet}, ${scenario.durationUs / 1e6} s, seed ${user.seed}`,
    `load: ${scenario.workload.summary}`,
    ...user.plan.map((fault) => `fault: ${faultToLine(fault)}`),
  ];
  if (config.redis === undefined) {
    lines.push(
      "note: the configuration names no Redis; simulated as if it did. Without one, every pod",
      "      keeps the whole limit for itself.",
    );
  }
  return lines;
}

async function runOutage(
  scenario: Scenario,
  scheme: Scheme,
  user: UserScenario,
  result: RunResult,
): Promise<OutageRun | undefined> {
  const planned = plannedOutage(user.plan, user.duration);
  if (planned !== undefined) return { outage: planned, result, isAdded: false };
  const outage = addedOutage(user.duration);
  if (outage === undefined) return undefined;
  const faults = [...user.plan, outageFault(outage)].sort((a, b) => a.atUs - b.atUs);
  const added = await runScenario(scenario, scheme, user.seed, { faults });
  return { outage, result: added, isAdded: true };
}

/** Traces are found beside the scenario that names them. */
async function readTraces(
  { load }: UserScenario,
  path: string,
  { limits }: Config,
): Promise<Traces | Problem[]> {
  const traces: Map<string, readonly Arrival[]> = new Map();
  const problems: Problem[] = [];
  const refuse = (source: string, message: string): void => {
    const nowhere = { line: undefined, column: undefined, field: "", value: undefined };
    problems.push({ source, ...nowhere, message });
  };
  for (const { trace } of load) {
    if (trace === undefined || traces.has(trace)) continue;
    try {
      const text = await readFile(resolve(dirname(path), trace), "utf8");
      const parsed = parseTrace(trace, text, limits);
      if (parsed.arrivals !== undefined) traces.set(trace, parsed.arrivals);
      else for (const problem of parsed.problems) refuse(...splitPlace(problem));
    } catch (error) {
      refuse(trace, `cannot be read: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return problems.length > 0 ? problems : traces;
}

/** "file:3: what" as its two parts. */
function splitPlace(problem: string): [source: string, message: string] {
  const at = problem.indexOf(": ");
  return [problem.slice(0, at), problem.slice(at + 2)];
}

function reportOf(
  { path, config }: SimulateRequest,
  user: UserScenario,
  scenario: Scenario,
  found: Findings,
): Report {
  const { result } = found;
  const command = `aliquot simulate ${path} --config ${config.file} --seed ${user.seed}`;
  return {
    title: `${path}, simulated`,
    command,
    runs: [
      {
        theme: "",
        question: `What does ${config.file} do under this load?`,
        workload: scenario.workload.summary,
        plan: user.plan.map(faultToLine),
        repeat: command,
        judged: true,
        verdicts: scenario.limits.map((limit, i) => ({
          promise: `${limit.name}: the excess is within the bound and what the faults explain`,
          passed: holds(limit, i, found),
          measured: result.limits[i]?.excess ?? 0,
          allowed: result.limits[i]?.bound ?? 0,
        })),
        result,
      },
    ],
  };
}
