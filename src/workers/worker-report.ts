/** What a worker tells of itself: counters since its start, and what it sees now. */
import type { LimitStanding } from "../core/mode-choice.ts";
import type { Counts, Outcome } from "../core/tally.ts";
import type { DurationUs, Tokens } from "../core/units.ts";
import type { KeyFigures } from "../ports/observed.ts";

/** The numbers of a `Tally`; it arrives without its methods. */
export interface TallyNumbers {
  readonly decisions: Float64Array;
  readonly tokens: Float64Array;
  readonly overAdmitted: Tokens;
  readonly clipped: Tokens;
  readonly damaged: number;
  readonly lostKeys: number;
}

/** What a limit has decided, and, in a whole report, how its buckets stand. */
export interface ReportedLimit {
  readonly name: string;
  readonly tally: TallyNumbers;
  readonly unreconciled?: Tokens;
  readonly debt?: Tokens;
  readonly share?: number;
}

export interface ReportedCounts extends Omit<Counts, "limits"> {
  readonly limits: readonly ReportedLimit[];
}

/** How long things took, by the buckets that all processes share. */
export interface ReportedDurations {
  readonly counts: Float64Array;
  readonly sumUs: DurationUs;
}

export interface ShownDescriptor {
  readonly rule: string;
  readonly descriptor: string;
  readonly counts: Readonly<Record<Outcome, number>>;
}

/** What costs more to find out, so that it is told when it is asked for. */
export interface Details {
  readonly standings: ReadonlyMap<string, LimitStanding>;
  readonly keys: KeyFigures;
  readonly shown: readonly ShownDescriptor[];
  /** Metrics of the process in the form of their library. */
  readonly process: readonly object[];
}

export interface WorkerReport {
  readonly counts: ReportedCounts;
  /** Time of decisions by transport, and of exchanges. */
  readonly durations: Readonly<Record<string, ReportedDurations>>;
  readonly reconcileDurations: ReportedDurations;
  readonly forwardUnmatched: number;
  readonly unmatchedDescriptors: number;
  readonly details?: Details;
}
