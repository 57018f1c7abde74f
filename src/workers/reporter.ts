/** Puts together what a worker tells of itself. */
import type { Limit } from "../core/limit.ts";
import type { LimitStanding } from "../core/mode-choice.ts";
import type { Counts, Figures } from "../core/tally.ts";
import type { KeyFigures } from "../ports/observed.ts";
import { REPORTED_KEYS_MAX } from "./pooled-reports.ts";
import type { ReportedDurations, ShownDescriptor, WorkerReport } from "./worker-report.ts";

/** Where the figures come from. */
export interface ReportParts {
  readonly engine: {
    limits(): readonly Limit[];
    standing(limit: Limit): LimitStanding;
    counts(): Counts;
    figures(): Figures;
  };
  readonly observed: {
    readonly durations: Readonly<Record<string, ReportedDurations>>;
    readonly reconcileDurations: ReportedDurations;
    readonly keys: { figures(most: number): KeyFigures };
  };
  readonly policies: { readonly unmatched: number };
  readonly envoy: {
    readonly unmatched: number;
    readonly shown: { all(): readonly ShownDescriptor[] };
  };
  process(): Promise<readonly object[]>;
}

/** @param isWhole - With what costs more to find out: a look at every key among it. */
export async function reportOf(parts: ReportParts, isWhole: boolean): Promise<WorkerReport> {
  const { engine, observed, policies, envoy } = parts;
  const details = isWhole ? await detailsOf(parts) : undefined;
  // Counters last, so that nothing has been waited for since.
  return {
    counts: isWhole ? engine.figures() : engine.counts(),
    durations: { ...observed.durations },
    reconcileDurations: observed.reconcileDurations,
    forwardUnmatched: policies.unmatched,
    unmatchedDescriptors: envoy.unmatched,
    ...(details !== undefined && { details }),
  };
}

async function detailsOf(parts: ReportParts): Promise<NonNullable<WorkerReport["details"]>> {
  const { engine, observed, envoy } = parts;
  const process = await parts.process();
  const standings = engine.limits().map((limit) => [limit.name, engine.standing(limit)] as const);
  return {
    process,
    standings: new Map(standings),
    keys: observed.keys.figures(REPORTED_KEYS_MAX),
    shown: envoy.shown.all(),
  };
}
