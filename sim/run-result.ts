/** All that one run measured: plain data, fit for JSON, charts and verdicts. */
import type { DurationUs, InstantUs, Tokens } from "../src/core/units.ts";

/** Spans for which over-admission is reported, seconds. */
export const SPANS_SECONDS = [0.1, 1, 10, 60] as const;

/** Length of one step of every series. */
export const SERIES_STEP_US = 100_000;

/** A series holds one number per `SERIES_STEP_US` from 0. */
export type Series = readonly number[];

export interface RunResult {
  readonly scenario: string;
  readonly scheme: string;
  readonly seed: number;
  readonly durationUs: DurationUs;
  readonly podsAtStart: number;
  /** One per limit, in the order of the scenario. */
  readonly limits: readonly LimitResult[];
  readonly fleet: FleetResult;
  readonly cost: CostResult;
  readonly integrity: IntegrityResult;
  readonly latency: LatencyResult;
  readonly settling: readonly Settling[];
  /** Faults, joins, leaves, in order of time. */
  readonly events: readonly RunEvent[];
  /** Broken invariants, at most a few; empty in a run that is safe. */
  readonly violations: readonly Violation[];
  /** Digest of every decision and delivery; equal for equal runs. */
  readonly traceHash: string;
  /** Events of the world, for speed; not part of the trace. */
  readonly worldEvents: number;
  /** Real time that the run took. */
  readonly tookMs: number;
}

export interface LimitResult {
  readonly name: string;
  /** Tokens per second and tokens, as at the start. */
  readonly rate: number;
  readonly burst: Tokens;
  /** Keys that were asked for. */
  readonly keys: number;
  readonly offered: Tokens;
  readonly admitted: Tokens;
  /** What one ideal bucket per key admits from the same arrivals. */
  readonly ideal: Tokens;
  /** The same from `Scenario.measureFromUs` on. */
  readonly admittedMeasured: Tokens;
  readonly idealMeasured: Tokens;
  /** `admittedMeasured / idealMeasured`; 1 when nothing was offered. */
  readonly utilisation: number;
  /** Largest debt of a virtual bucket that replays the admissions, over all keys and spans. */
  readonly excess: Tokens;
  /** When it was reached, and for which key. */
  readonly excessAtUs: InstantUs;
  readonly excessKey: string;
  /** What the limit's mode allows in this scenario (S = 1); see `sim/bound.ts`. */
  readonly bound: Tokens;
  /**
   * Largest over-admission per span of `SPANS_SECONDS`, as a part of b + r span; negative: below.
   */
  readonly overAdmission: readonly number[];
  /** Mean over time of the virtual bucket's debt (0 while it has none), summed over keys. */
  readonly debtMean: Tokens;
  /** Denied although the ideal bucket admits, and the reverse, per million requests. */
  readonly falseDenialsPerMillion: number;
  readonly falseAdmitsPerMillion: number;
  /** Tokens offered, admitted, and admitted by the ideal, per step. */
  readonly offeredSeries: Series;
  readonly admittedSeries: Series;
  readonly idealSeries: Series;
  /** Debt of the virtual bucket of the most indebted key at the end of each step. */
  readonly debtSeries: Series;
}

export interface FleetResult {
  readonly perPod: readonly PodResult[];
  /** Jain's index of admitted over offered per pod, over pods that were offered something. */
  readonly jain: number;
  /** Smallest and largest admitted over offered among them. */
  readonly ratioMin: number;
  readonly ratioMax: number;
  /** Serving pods at the end of each step. */
  readonly podsSeries: Series;
  /** Jain's index over clients, 1 when the workload tells no clients apart. */
  readonly jainClients: number;
  readonly requests: number;
  readonly requestsAdmitted: number;
  /** Tokens admitted per second over all limits, from `measureFromUs` on. */
  readonly admittedPerSecond: number;
  /** Standard deviation of the tokens per step in the last third, as a part of their mean. */
  readonly oscillation: number;
}

export interface PodResult {
  readonly pod: number;
  readonly offered: Tokens;
  readonly admitted: Tokens;
  readonly joinedAtUs: InstantUs;
  /** Undefined when it served to the end. */
  readonly endedAtUs: InstantUs | undefined;
  /** Part of the fleet's admissions in each step. */
  readonly admittedSeries: Series;
  /** What the pod believes its share to be, at the end of each step; empty when it has no idea. */
  readonly shareSeries: Series;
}

export interface CostResult {
  readonly storeCalls: number;
  readonly keyOperations: number;
  readonly bytes: number;
  readonly callsPerAdmit: number;
  readonly keyOperationsPerAdmit: number;
  readonly callsPerSecond: number;
  /** Most key-operations of one key in one second. */
  readonly keyOperationsPerSecondMax: number;
  /** Most calls unanswered at one instant. */
  readonly inFlightMax: number;
  /** Calls per step. */
  readonly callsSeries: Series;
}

export interface IntegrityResult {
  readonly duplicatesAbsorbed: number;
  readonly clippedDebt: Tokens;
  /** Ledger at the end less what nodes hold; 0 when the scheme has none. */
  readonly ledgerLeak: Tokens;
  /** Largest difference between what a node believes N to be and the truth, at the end. */
  readonly podsError: number;
  /** Requests that were never answered: the pod died, or a bug. */
  readonly unanswered: number;
  /** Of these, at pods that were alive. */
  readonly forgotten: number;
  readonly messagesLost: number;
  readonly messagesDuplicated: number;
}

/** Time from arrival to answer of requests that were not answered at once. */
export interface LatencyResult {
  readonly held: number;
  readonly heldPart: number;
  readonly p50Us: DurationUs;
  readonly p99Us: DurationUs;
  readonly p999Us: DurationUs;
  readonly maxUs: DurationUs;
}

/** How long after a mark the admitted rate came within 5 % of what the ideal admits, for good. */
export interface Settling {
  readonly name: string;
  readonly atUs: InstantUs;
  /** Infinity when it never did (null in JSON). */
  readonly settledAfterUs: DurationUs;
  /** Highest rate in 500 ms after the mark, as a part of the ideal's. */
  readonly overshoot: number;
  /** Tokens the ideal admitted and the fleet did not, in the first second after the mark. */
  readonly late: Tokens;
}

export interface RunEvent {
  readonly atUs: InstantUs;
  readonly kind: "fault" | "heal" | "join" | "leave" | "crash" | "mark";
  readonly text: string;
}

export interface Violation {
  /** I1 to I8, or the name of a further law. */
  readonly invariant: string;
  readonly atUs: InstantUs;
  readonly text: string;
}
