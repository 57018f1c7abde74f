/** From the journal of a run to its verdict: pure arithmetic, no clock and no process. */
import type { BucketShape } from "../src/core/limit.ts";
import { type DurationUs, type InstantUs, type Tokens, US_PER_SECOND } from "../src/core/units.ts";
import {
  type Admission,
  certainExcess,
  type Excess,
  idealAdmissions,
  replayedExcess,
} from "./excess.ts";
import { type Arrival, OUTCOME } from "./journal.ts";

/** Parts of a run between two steps of its schedule. */
export interface Phase {
  /** What began it. */
  readonly cause: string;
  readonly fromSeconds: number;
  readonly toSeconds: number;
  readonly offeredPerSecond: number;
  readonly admittedPerSecond: number;
  /** Without the first seconds, in which the fleet may still adapt; NaN when none are left. */
  readonly settledPerSecond: number;
}

/** Milliseconds. */
export interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface SecondTotals {
  offered: number;
  admitted: number;
  /** Admitted by pod, by number from 1; index 0 is unused. */
  readonly byPod: number[];
}

export interface Verdict {
  readonly seconds: number;
  readonly offered: number;
  readonly admitted: Tokens;
  readonly denied: number;
  /** Requests without a decision: their pod was killed, or answered with an error. */
  readonly failed: number;
  readonly excess: Excess & { readonly ofBurst: number };
  /** The part of the excess that no delay of answers can explain away. */
  readonly certainExcess: Excess;
  /** Tokens that one ideal bucket would have admitted of the answered requests. */
  readonly ideal: Tokens;
  readonly utilisation: number;
  readonly latencyMs: Latency;
  /** How late requests were sent against their schedule: what the machine adds to every latency. */
  readonly latenessMs: Latency;
  readonly phases: readonly Phase[];
  readonly timeline: readonly SecondTotals[];
}

/** A change of the fleet or its store at an instant of the journal's clock. */
export interface Change {
  readonly atUs: InstantUs;
  readonly cause: string;
}

/** After a change this much is left out of a settled rate. */
export const SETTLING_US: DurationUs = 3 * US_PER_SECOND;

/**
 * Judges a run.
 *
 * @param changes - The first is the start of the load.
 * @param endUs - End of the load.
 */
export function judge(
  shape: BucketShape,
  journal: Iterable<Arrival>,
  changes: readonly Change[],
  endUs: InstantUs,
): Verdict {
  const startUs = changes[0]?.atUs ?? 0;
  const admissions: Admission[] = [];
  const arrivalsUs: number[] = [];
  const latenciesUs: number[] = [];
  const latenessUs: number[] = [];
  const timeline = new Timeline(startUs, endUs);
  const counts = [0, 0, 0];
  for (const arrival of journal) {
    const { sentUs, answeredUs, outcome } = arrival;
    counts[outcome] = (counts[outcome] ?? 0) + 1;
    timeline.add(arrival);
    if (outcome === OUTCOME.failed) continue;
    arrivalsUs.push(sentUs);
    latenciesUs.push(answeredUs - sentUs);
    latenessUs.push(sentUs - arrival.dueUs);
    if (outcome === OUTCOME.admitted) admissions.push({ sentUs, answeredUs });
  }
  const excess = replayedExcess(shape, ascending(admissions.map(({ answeredUs }) => answeredUs)));
  const ideal = idealAdmissions(shape, ascending(arrivalsUs));
  const admitted = counts[OUTCOME.admitted] ?? 0;
  return {
    seconds: (endUs - startUs) / US_PER_SECOND,
    offered: counts.reduce((sum, count) => sum + count, 0),
    admitted,
    denied: counts[OUTCOME.denied] ?? 0,
    failed: counts[OUTCOME.failed] ?? 0,
    excess: { ...sinceStart(excess, startUs), ofBurst: excess.tokens / shape.burst },
    certainExcess: sinceStart(certainExcess(shape, admissions), startUs),
    ideal,
    utilisation: ideal === 0 ? 1 : admitted / ideal,
    latencyMs: latencyOf(latenciesUs),
    latenessMs: latencyOf(latenessUs),
    phases: phasesOf(timeline, changes, endUs),
    timeline: timeline.seconds,
  };
}

function sinceStart({ tokens, atUs }: Excess, startUs: InstantUs): Excess {
  return { tokens, atUs: tokens > 0 ? atUs - startUs : 0 };
}

function ascending(values: readonly number[]): Float64Array {
  return Float64Array.from(values).sort();
}

/** The value below or at which the given part of the ascending values lies; NaN for none. */
export function percentile(values: Float64Array, part: number): number {
  if (values.length === 0) return Number.NaN;
  return values[Math.max(0, Math.ceil(part * values.length) - 1)] as number;
}

function latencyOf(durationsUs: readonly number[]): Latency {
  const sorted = ascending(durationsUs);
  const ms = (part: number): number => percentile(sorted, part) / 1_000;
  return { p50: ms(0.5), p99: ms(0.99), max: ms(1) };
}

/** Offered by the instant of sending, admitted by the instant of the answer. */
class Timeline {
  readonly seconds: SecondTotals[];
  readonly #startUs: InstantUs;
  readonly #offeredUs: number[] = [];
  readonly #admittedUs: number[] = [];

  constructor(startUs: InstantUs, endUs: InstantUs) {
    this.#startUs = startUs;
    const count = Math.max(1, Math.ceil((endUs - startUs) / US_PER_SECOND));
    this.seconds = Array.from({ length: count }, () => ({ offered: 0, admitted: 0, byPod: [] }));
  }

  add({ pod, sentUs, answeredUs, outcome }: Arrival): void {
    this.#offeredUs.push(sentUs);
    this.#at(sentUs).offered += 1;
    if (outcome !== OUTCOME.admitted) return;
    this.#admittedUs.push(answeredUs);
    const second = this.#at(answeredUs);
    second.admitted += 1;
    second.byPod[pod] = (second.byPod[pod] ?? 0) + 1;
  }

  offeredPerSecond(fromUs: InstantUs, toUs: InstantUs): number {
    return perSecond(this.#offeredUs, fromUs, toUs);
  }

  admittedPerSecond(fromUs: InstantUs, toUs: InstantUs): number {
    return perSecond(this.#admittedUs, fromUs, toUs);
  }

  #at(instantUs: InstantUs): SecondTotals {
    const index = Math.floor((instantUs - this.#startUs) / US_PER_SECOND);
    const last = this.seconds.length - 1;
    return this.seconds[Math.min(Math.max(index, 0), last)] as SecondTotals;
  }
}

function perSecond(instantsUs: readonly number[], fromUs: InstantUs, toUs: InstantUs): number {
  if (toUs <= fromUs) return Number.NaN;
  let count = 0;
  for (const instantUs of instantsUs) if (instantUs >= fromUs && instantUs < toUs) count += 1;
  return (count / (toUs - fromUs)) * US_PER_SECOND;
}

function phasesOf(timeline: Timeline, changes: readonly Change[], endUs: InstantUs): Phase[] {
  const startUs = changes[0]?.atUs ?? 0;
  return changes.flatMap(({ atUs, cause }, index) => {
    const toUs = changes[index + 1]?.atUs ?? endUs;
    if (toUs <= atUs) return [];
    return [
      {
        cause,
        fromSeconds: (atUs - startUs) / US_PER_SECOND,
        toSeconds: (toUs - startUs) / US_PER_SECOND,
        offeredPerSecond: timeline.offeredPerSecond(atUs, toUs),
        admittedPerSecond: timeline.admittedPerSecond(atUs, toUs),
        settledPerSecond: timeline.admittedPerSecond(atUs + SETTLING_US, toUs),
      },
    ];
  });
}
