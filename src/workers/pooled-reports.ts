/**
 * What the workers have told last, as the figures of one pod. A worker that is gone leaves its
 * counters behind, so that none ever goes back; at most what it did after its last report is lost.
 */
import type { LimitStanding } from "../core/mode-choice.ts";
import type { Figures } from "../core/tally.ts";
import type { KeyFigures, RankedKey } from "../ports/observed.ts";
import { addNumbers, Bygone, pooledFigures } from "./pooled-counts.ts";
import type { Details, ReportedDurations, ShownDescriptor, WorkerReport } from "./worker-report.ts";

/** What durations are added to. */
interface DurationSum {
  readonly counts: Float64Array;
  sumUs: number;
}

export interface PooledReportsOptions {
  /** Of each pod. */
  readonly workers: number;
  /** Names of the limits in force, in order. */
  readonly names: () => readonly string[];
  /** Of the metrics of processes that are gone, what outlives them, in one list. */
  readonly outliving: (lists: readonly (readonly object[])[]) => readonly object[];
}

/** Keys that are shown are few; of each worker so many are told. */
export const REPORTED_KEYS_MAX = 50;

/**
 * Most descriptors shown of workers that are gone, beside one for each rule that counts the rest:
 * each worker saw other ones, and workers may die without end.
 */
const BYGONE_SHOWN_MAX = 2_000;
/** What counts the rest of a rule together, as in each worker. */
const OTHERS = "other";

export class PooledReports {
  readonly #options: PooledReportsOptions;
  readonly #told = new Map<number, WorkerReport>();
  readonly #bygone = new Bygone();
  readonly #bygoneDurations = new Map<string, DurationSum>();
  #bygoneProcess: readonly object[] = [];
  #bygoneShown: readonly ShownDescriptor[] = [];
  #forwardUnmatched = 0;
  #unmatchedDescriptors = 0;

  constructor(options: PooledReportsOptions) {
    this.#options = options;
  }

  /** @param worker - Which process; its number is never used again. */
  note(worker: number, report: WorkerReport): void {
    const before = this.#told.get(worker);
    // A short report leaves out what is known from the last whole one.
    const known = new Map(before?.counts.limits.map((limit) => [limit.name, limit]));
    const limits = report.counts.limits.map((limit) => ({ ...known.get(limit.name), ...limit }));
    const details = report.details ?? before?.details;
    this.#told.set(worker, {
      ...report,
      counts: { ...report.counts, limits },
      ...(details !== undefined && { details }),
    });
  }

  /** The worker is gone: what it counted stays, what it saw goes. */
  retire(worker: number): void {
    const report = this.#told.get(worker);
    if (report === undefined) return;
    this.#told.delete(worker);
    this.#bygone.keep(new Set(this.#options.names()));
    this.#bygone.add(report.counts);
    for (const [name, durations] of Object.entries(report.durations)) {
      addDurations(this.#bygoneDurations, name, durations);
    }
    addDurations(this.#bygoneDurations, RECONCILES, report.reconcileDurations);
    this.#forwardUnmatched += report.forwardUnmatched;
    this.#unmatchedDescriptors += report.unmatchedDescriptors;
    const { shown = [], process = [] } = report.details ?? {};
    this.#bygoneShown = bounded(mergedShown([this.#bygoneShown, shown]));
    this.#bygoneProcess = this.#options.outliving([this.#bygoneProcess, process]);
  }

  figures(): Figures {
    const { workers, names } = this.#options;
    const all = this.#reports.map(({ counts }) => counts);
    const inForce = names();
    this.#bygone.keep(new Set(inForce));
    return pooledFigures(all, { names: inForce, workers, bygone: this.#bygone });
  }

  /** Overwrites what `into` holds with the sums of all workers. */
  fillDurations(into: Readonly<Record<string, DurationSum>>, reconciles: DurationSum): void {
    for (const [name, sum] of Object.entries(into)) {
      this.#fill(sum, name, ({ durations }) => durations[name]);
    }
    this.#fill(reconciles, RECONCILES, ({ reconcileDurations }) => reconcileDurations);
  }

  get forwardUnmatched(): number {
    return this.#forwardUnmatched + sumOf(this.#reports, (each) => each.forwardUnmatched);
  }

  get descriptors(): { readonly unmatched: number; readonly shown: readonly ShownDescriptor[] } {
    const live = sumOf(this.#reports, (each) => each.unmatchedDescriptors);
    const shown = this.#details.map((details) => details.shown);
    return {
      unmatched: this.#unmatchedDescriptors + live,
      shown: mergedShown([this.#bygoneShown, ...shown]),
    };
  }

  /** How a limit is kept, as some worker sees it; undefined when none has told of it yet. */
  standing(limit: string): LimitStanding | undefined {
    for (const { standings } of this.#details) {
      const standing = standings.get(limit);
      if (standing !== undefined) return standing;
    }
    return undefined;
  }

  /** @param most - Longest list. */
  keys(most: number): KeyFigures {
    const all = this.#details.map(({ keys }) => keys);
    return {
      sampledEvery: all.reduce((gap, { sampledEvery }) => Math.max(gap, sampledEvery), 1),
      busiest: mergedKeys(all.map(({ busiest }) => busiest)).slice(0, most),
      mostDenied: mergedKeys(all.map(({ mostDenied }) => mostDenied)).slice(0, most),
    };
  }

  /** Metrics of all processes, one list each; those that are gone have one together. */
  get processes(): readonly (readonly object[])[] {
    return [this.#bygoneProcess, ...this.#details.map(({ process }) => process)];
  }

  get #reports(): readonly WorkerReport[] {
    return [...this.#told.values()];
  }

  get #details(): readonly Details[] {
    return this.#reports.flatMap(({ details }) => (details === undefined ? [] : [details]));
  }

  #fill(
    sum: DurationSum,
    name: string,
    part: (report: WorkerReport) => ReportedDurations | undefined,
  ): void {
    sum.counts.fill(0);
    sum.sumUs = 0;
    for (const durations of [this.#bygoneDurations.get(name), ...this.#reports.map(part)]) {
      if (durations === undefined) continue;
      addNumbers(sum.counts, durations.counts);
      sum.sumUs += durations.sumUs;
    }
  }
}

/** No transport has this name. */
const RECONCILES = "reconciles";

function addDurations(
  sums: Map<string, DurationSum>,
  name: string,
  { counts, sumUs }: ReportedDurations,
): void {
  const sum = sums.get(name) ?? { counts: new Float64Array(counts.length), sumUs: 0 };
  addNumbers(sum.counts, counts);
  sum.sumUs += sumUs;
  sums.set(name, sum);
}

/** The first ones as they are, and the others of each rule together. */
function bounded(shown: readonly ShownDescriptor[]): readonly ShownDescriptor[] {
  const isKept = ({ descriptor }: ShownDescriptor, index: number): boolean =>
    index < BYGONE_SHOWN_MAX || descriptor === OTHERS;
  if (shown.every(isKept)) return shown;
  const together = shown.map((each, index) =>
    isKept(each, index) ? each : { ...each, descriptor: OTHERS },
  );
  return mergedShown([together]);
}

/** Each worker bounds what it shows, so their sum is bounded. */
function mergedShown(lists: readonly (readonly ShownDescriptor[])[]): readonly ShownDescriptor[] {
  const merged = new Map<string, ShownDescriptor>();
  for (const { rule, descriptor, counts } of lists.flat()) {
    const id = JSON.stringify([rule, descriptor]);
    const before = merged.get(id)?.counts ?? { allowed: 0, denied: 0, shadow_denied: 0 };
    const sum = {
      allowed: before.allowed + counts.allowed,
      denied: before.denied + counts.denied,
      shadow_denied: before.shadow_denied + counts.shadow_denied,
    };
    merged.set(id, { rule, descriptor, counts: sum });
  }
  return [...merged.values()];
}

type Ranking = readonly RankedKey[];

function mergedKeys(lists: readonly Ranking[]): Ranking {
  const merged = new Map<string, Ranking[number]>();
  for (const { limit, key, perSecond } of lists.flat()) {
    const id = `${limit}\0${key}`;
    merged.set(id, { limit, key, perSecond: perSecond + (merged.get(id)?.perSecond ?? 0) });
  }
  return [...merged.values()].sort((a, b) => b.perSecond - a.perSecond);
}

function sumOf(reports: readonly WorkerReport[], part: (report: WorkerReport) => number): number {
  return reports.reduce((sum, report) => sum + part(report), 0);
}
