/** What a report is made of: runs with what was asked of them. */
import type { RunResult } from "../run-result.ts";

export interface ReportedVerdict {
  readonly promise: string;
  readonly passed: boolean;
  readonly measured: number;
  readonly allowed: number;
}

export interface ReportedRun {
  readonly theme: string;
  readonly question: string;
  /** What callers do, in one line. */
  readonly workload: string;
  /** The plan of faults, one line each. */
  readonly plan: readonly string[];
  /** The command that repeats this run. */
  readonly repeat: string;
  /** `false` for a scheme that is run for comparison: its verdicts are ours, not its own. */
  readonly judged: boolean;
  readonly verdicts: readonly ReportedVerdict[];
  readonly result: RunResult;
}

export interface Report {
  readonly title: string;
  /** The command that made it. */
  readonly command: string;
  readonly runs: readonly ReportedRun[];
}

/** All runs of one scenario: by scheme, in the order in which they came. */
export interface ScenarioRuns {
  readonly scenario: string;
  readonly theme: string;
  readonly question: string;
  readonly bySchemes: readonly SchemeRuns[];
}

/** The runs of one scheme in one scenario, one per seed. */
export interface SchemeRuns {
  readonly scheme: string;
  readonly runs: readonly ReportedRun[];
  /** The run that comes closest to its bound or goes farthest beyond it. */
  readonly worst: ReportedRun;
}

export function byScenario(runs: readonly ReportedRun[]): ScenarioRuns[] {
  return [...groupBy(runs, ({ result }) => result.scenario)].map(([scenario, group]) => ({
    scenario,
    theme: group[0]?.theme ?? "",
    question: group[0]?.question ?? "",
    bySchemes: [...groupBy(group, ({ result }) => result.scheme)].map(([scheme, same]) => ({
      scheme,
      runs: same,
      worst: same.reduce((a, b) => (boundPart(b.result) > boundPart(a.result) ? b : a)),
    })),
  }));
}

/** The largest excess of a run's limits as a part of the bound. */
export function boundPart(result: RunResult): number {
  return Math.max(0, ...result.limits.map(({ excess, bound }) => excess / bound));
}

/** Admitted as a part of what ideal buckets admit, all limits together. */
export function utilisation(result: RunResult): number {
  const sum = (of: (limit: RunResult["limits"][number]) => number): number =>
    result.limits.reduce((total, limit) => total + of(limit), 0);
  const ideal = sum(({ idealMeasured }) => idealMeasured);
  return ideal === 0 ? 1 : sum(({ admittedMeasured }) => admittedMeasured) / ideal;
}

/** The largest excess of a run's limits, tokens. */
export function excessOf(result: RunResult): number {
  return Math.max(0, ...result.limits.map(({ excess }) => excess));
}

export function isPassed(run: ReportedRun): boolean {
  return run.verdicts.every(({ passed }) => passed);
}

function groupBy<Item>(items: readonly Item[], of: (item: Item) => string): Map<string, Item[]> {
  const groups: Map<string, Item[]> = new Map();
  for (const item of items) {
    const group = groups.get(of(item));
    if (group === undefined) groups.set(of(item), [item]);
    else group.push(item);
  }
  return groups;
}
