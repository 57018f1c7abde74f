/**
 * Counts of several workers as those of one pod.
 *
 * What is counted adds up. What is seen is added where each worker sees a part of it (keys, what is
 * yet to be told), and taken from the worst off where all look at the same thing: the fallback is
 * active when it is for one of them, and the store is up when it is for all.
 */
import {
  type Counts,
  type Figures,
  type LimitFigures,
  noReconciles,
  type ReconcileCounts,
  Tally,
} from "../core/tally.ts";
import type { ReportedCounts, ReportedLimit, TallyNumbers } from "./worker-report.ts";

/** Adds one worker's tally to a sum. */
export function addTally(sum: Tally, tally: TallyNumbers): void {
  addNumbers(sum.decisions, tally.decisions);
  addNumbers(sum.tokens, tally.tokens);
  sum.overAdmitted += tally.overAdmitted;
  sum.clipped += tally.clipped;
  sum.damaged += tally.damaged;
  sum.lostKeys += tally.lostKeys;
}

export function addNumbers(sum: Float64Array, numbers: Float64Array): void {
  for (let i = 0; i < sum.length; i += 1) sum[i] = (sum[i] as number) + (numbers[i] ?? 0);
}

/** What workers that are gone have counted. */
export class Bygone {
  readonly tallies: Map<string, Tally> = new Map();
  evictedKeys = 0;
  lostTokens = 0;
  readonly reconciled: ReconcileCounts = noReconciles();

  add({ limits, evictedKeys, lostTokens, reconciled }: ReportedCounts): void {
    for (const { name, tally } of limits) {
      const sum = this.tallies.get(name) ?? new Tally();
      addTally(sum, tally);
      this.tallies.set(name, sum);
    }
    this.evictedKeys += evictedKeys;
    this.lostTokens += lostTokens;
    addReconciles(this.reconciled, reconciled);
  }

  /** A limit that is gone and comes back begins at zero, as it does in one process. */
  keep(names: ReadonlySet<string>): void {
    for (const name of this.tallies.keys()) if (!names.has(name)) this.tallies.delete(name);
  }
}

export interface PoolTerms {
  /** Limits in force, in order. */
  readonly names: readonly string[];
  /** Workers of each pod. */
  readonly workers: number;
  readonly bygone: Bygone;
}

/** @param all - One element per live worker. */
export function pooledFigures(all: readonly ReportedCounts[], terms: PoolTerms): Figures {
  const { names, workers, bygone } = terms;
  const reconciled = { ...bygone.reconciled };
  for (const each of all) addReconciles(reconciled, each.reconciled);
  const members = most(all.map(({ pods }) => pods));
  return {
    limits: pooledLimits(all, names, bygone),
    trackedKeys: total(all.map(({ trackedKeys }) => trackedKeys)),
    evictedKeys: bygone.evictedKeys + total(all.map(({ evictedKeys }) => evictedKeys)),
    // Members are counted; a pod that restarts one of its workers is not another pod.
    pods: Math.max(1, Math.round(members / workers)),
    listing: listingOf(all),
    fallbackActive: all.some(({ fallbackActive }) => fallbackActive),
    storeUp: all.every(({ storeUp }) => storeUp),
    lostTokens: bygone.lostTokens + total(all.map(({ lostTokens }) => lostTokens)),
    reconciled,
  };
}

function pooledLimits(
  all: readonly ReportedCounts[],
  names: readonly string[],
  { tallies }: Bygone,
): LimitFigures[] {
  const parts = new Map<string, ReportedLimit[]>(names.map((name) => [name, []]));
  for (const { limits } of all) for (const limit of limits) parts.get(limit.name)?.push(limit);
  return [...parts].map(([name, limits]) => {
    const tally = new Tally();
    const past = tallies.get(name);
    if (past !== undefined) addTally(tally, past);
    for (const each of limits) addTally(tally, each.tally);
    return {
      name,
      tally,
      unreconciled: total(limits.map(({ unreconciled = 0 }) => unreconciled)),
      debt: most(limits.map(({ debt = 0 }) => debt)),
      share: Math.min(1, total(limits.map(({ share = 0 }) => share))),
    };
  });
}

/** The one that is current, if any is; the larger of several. */
function listingOf(all: readonly ReportedCounts[]): Counts["listing"] {
  const listings = all.flatMap(({ listing }) => (listing === undefined ? [] : [listing]));
  if (listings.length === 0) return undefined;
  return {
    pods: most(listings.map(({ pods }) => pods)),
    isCurrent: listings.every(({ isCurrent }) => isCurrent),
  };
}

function addReconciles(sum: ReconcileCounts, part: ReconcileCounts): void {
  sum.ok += part.ok;
  sum.timeout += part.timeout;
  sum.unreachable += part.unreachable;
  sum.refused += part.refused;
  sum.malformed += part.malformed;
  sum.keys += part.keys;
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

function most(numbers: readonly number[]): number {
  return numbers.reduce((larger, number) => Math.max(larger, number), 0);
}
