/** From the text of a scenario file to a scenario that makes sense, or to every problem at once. */
import { didYouMean } from "../../src/config/closest.ts";
import { formatValue, type Problem } from "../../src/config/problem.ts";
import { parseSourceFile, type SourceFile } from "../../src/config/source-file.ts";
import { formatPath, isMap, type Path, valueAt } from "../../src/config/tree.ts";
import type { Limit } from "../../src/core/limit.ts";
import { type Fault, parseFault } from "../fault-plan.ts";
import {
  fieldNames,
  type ScenarioFile,
  type ScenarioLoad,
  scenarioSchema,
} from "./scenario-schema.ts";

export interface UserScenario extends Omit<ScenarioFile, "faults"> {
  readonly plan: readonly Fault[];
}

export type ReadScenario =
  | { readonly scenario: UserScenario; readonly problems?: undefined }
  | { readonly scenario?: undefined; readonly problems: readonly Problem[] };

/** More requests than this take minutes. */
const REQUESTS_MAX = 20_000_000;

/** @param limits - Those of the configuration that the scenario is for. */
export function readScenario(path: string, text: string, limits: readonly Limit[]): ReadScenario {
  const file = parseSourceFile(path, text);
  const problems = new Problems(file);
  if (file.problems.length > 0) return { problems: file.problems };
  if (!isMap(file.value)) {
    problems.add([], "must be a map with duration, pods or autoscaler, and load");
    return { problems: problems.found };
  }
  const parsed = scenarioSchema.safeParse(file.value);
  if (!parsed.success) {
    for (const issue of parsed.error.issues) problems.addIssue(issue);
    return { problems: problems.found };
  }
  const { faults, ...scenario } = parsed.data;
  checkFleet(scenario, problems);
  for (const [i, load] of scenario.load.entries()) checkLoad(load, ["load", i], limits, problems);
  checkAmount(scenario, problems);
  const plan = faults.flatMap((line, i) => readFault(line, i, scenario.duration, problems));
  if (problems.found.length > 0) return { problems: problems.found };
  return { scenario: { ...scenario, plan: plan.sort((a, b) => a.atUs - b.atUs) } };
}

type Issue = { readonly code?: string; readonly message: string; readonly path: PropertyKey[] };

class Problems {
  readonly found: Problem[] = [];
  readonly #file: SourceFile;

  constructor(file: SourceFile) {
    this.#file = file;
  }

  add(path: Path, message: string, part: "name" | "value" = "value"): void {
    const value = part === "name" ? undefined : valueAt(this.#file.value, path);
    const { line, column } = this.#file.position(path, part);
    const shown = isMap(value) || Array.isArray(value) ? undefined : formatValue(value);
    const source = this.#file.path;
    this.found.push({ source, line, column, field: formatPath(path), message, value: shown });
  }

  addIssue(issue: Issue & { readonly keys?: readonly string[] }): void {
    const path = issue.path as (string | number)[];
    if (issue.code === "unrecognized_keys") {
      const known = fieldNames(path);
      for (const name of issue.keys ?? []) {
        const guess = didYouMean(name, known);
        const advice = guess === "" ? `; known here: ${known.join(", ")}` : guess;
        this.add([...path, name], `unknown field${advice}`, "name");
      }
      return;
    }
    const isMissing = valueAt(this.#file.value, path) === undefined;
    this.add(path, isMissing ? `is missing; ${issue.message}` : issue.message);
  }
}

function checkFleet({ pods, autoscaler }: Omit<ScenarioFile, "faults">, problems: Problems): void {
  if (pods === undefined && autoscaler === undefined) {
    problems.add([], "needs pods, such as pods: 20, or an autoscaler");
  } else if (pods !== undefined && autoscaler !== undefined) {
    problems.add(["pods"], "may not stand beside autoscaler: its min is the number at the start");
  }
  if (autoscaler !== undefined && autoscaler.max < autoscaler.min) {
    problems.add(["autoscaler", "max"], `must be at least min, ${autoscaler.min}`);
  }
}

/**
 * Fields that a kind of load knows beside `limit` and `key`; the first is what makes it that kind.
 */
const OPEN = ["rate", "shape", "spacing", "keys", "cost", "every", "for", "otherwise"] as const;
const CLOSED = ["clients", "think", "backoff", "attempts"] as const;

function checkLoad(
  load: ScenarioLoad,
  path: Path,
  limits: readonly Limit[],
  problems: Problems,
): void {
  const given = (names: readonly (keyof ScenarioLoad)[]): (keyof ScenarioLoad)[] =>
    names.filter((name) => load[name] !== undefined);
  const refuse = (names: readonly (keyof ScenarioLoad)[], beside: string): void => {
    for (const name of given(names)) {
      problems.add([...path, name], `has no meaning beside ${beside}`, "name");
    }
  };
  if (load.trace !== undefined) {
    refuse(["limit", "key", ...OPEN, ...CLOSED], "trace, which says it all");
    return;
  }
  const names = limits.map(({ name }) => name);
  if (load.limit === undefined) {
    problems.add(path, `needs limit: one of ${names.join(", ")}`);
  } else if (!names.includes(load.limit)) {
    const guess = didYouMean(load.limit, names);
    const known = guess === "" ? `; there are ${names.join(", ")}` : guess;
    problems.add([...path, "limit"], `is no limit of the configuration${known}`);
  }
  if (load.clients !== undefined) {
    refuse(OPEN, "clients, who ask for one token at a time");
    return;
  }
  refuse(CLOSED.slice(1), "rate; say clients for a closed loop");
  if (load.rate === undefined) {
    problems.add(path, "needs rate (tokens asked for), clients or trace");
    return;
  }
  checkShape(load, path, problems);
}

function checkShape(load: ScenarioLoad, path: Path, problems: Problems): void {
  const { shape = "even", keys, key, cost } = load;
  const needs = (field: "every" | "for" | "otherwise", what: string): void => {
    if (load[field] === undefined) problems.add(path, `shape ${shape} needs ${field}: ${what}`);
  };
  if (shape === "moving-hot-pod") needs("every", "how long a pod stays hot, such as 3s");
  if (shape === "aligned") needs("every", "the time between two instants, such as 100ms");
  if (shape === "hot-with-background") needs("otherwise", "the rate at each other pod");
  if (shape === "bursts") {
    needs("every", "the time from one burst to the next, such as 10s");
    needs("for", "the length of a burst, such as 1s");
  }
  if (keys !== undefined && shape !== "even") {
    problems.add([...path, "keys"], "go with shape: even only", "name");
  }
  if (keys !== undefined && key !== undefined) {
    problems.add([...path, "key"], "may not stand beside keys", "name");
  }
  if (typeof cost === "object" && (shape !== "even" || keys !== undefined)) {
    problems.add([...path, "cost"], "from and to go with shape: even and a single key", "name");
  } else if (typeof cost === "object" && cost.to <= cost.from) {
    problems.add([...path, "cost", "to"], `must be more than from, ${cost.from}`);
  }
}

function checkAmount({ load, duration }: Omit<ScenarioFile, "faults">, problems: Problems): void {
  let requests = 0;
  for (const { rate, cost, clients, think } of load) {
    if (rate !== undefined) {
      const mean = typeof cost === "object" ? cost.from : (cost ?? 1);
      requests += ((rate.tokens / rate.spanUs) * duration) / mean;
    }
    if (clients !== undefined) requests += (clients * duration) / (think ?? 1_000_000);
  }
  if (requests <= REQUESTS_MAX) return;
  const millions = Math.round(requests / 1e6);
  problems.add(
    ["load"],
    `is about ${millions} million requests in all, at most ${REQUESTS_MAX / 1e6} million`,
  );
}

function readFault(line: string, i: number, durationUs: number, problems: Problems): Fault[] {
  try {
    const fault = parseFault(line);
    if (fault.kind === "config") {
      problems.add(["faults", i], "a change of the configuration cannot be simulated here");
    } else if (fault.atUs < 0 || fault.atUs >= durationUs) {
      problems.add(["faults", i], `must begin within the ${durationUs / 1e6} s of the run`);
    } else return [fault];
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    problems.add(["faults", i], error.message);
  }
  return [];
}
