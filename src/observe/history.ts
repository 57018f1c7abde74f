/**
 * What happened in each of the last 300 seconds: decisions, of all limits and of each, how long
 * they took, pods and keys. Plain counters are read once a second and their growth is kept, so that
 * a check pays nothing for it.
 */
import {
  type Counts,
  OUTCOMES,
  SOURCES,
  STORE_TIERS,
  storeTierOf,
  type Tally,
} from "../core/tally.ts";
import { type DurationUs, type InstantUs, US_PER_MS, US_PER_SECOND } from "../core/units.ts";
import type { HistoryColumns, OutcomeRates, PastSeconds } from "../ports/observed.ts";
import { BUCKETS_US, type DurationCounts } from "./duration-counts.ts";

export const HISTORY_SECONDS = 300;
/** Limits that are remembered one by one; each takes 3.6 kB once it has decided something. */
const LIMITS_MAX = 1_000;
/** Present rates are means over so many seconds. */
const RATE_SECONDS = 5;
/** Seconds to each number of a limit's outline. */
const OUTLINE_SECONDS = 5;

const NO_RATES: OutcomeRates = [0, 0, 0];

class Ring {
  readonly #cells: Float32Array = new Float32Array(HISTORY_SECONDS);

  set(second: number, value: number): void {
    this.#cells[second % HISTORY_SECONDS] = value;
  }

  at(second: number): number {
    return this.#cells[second % HISTORY_SECONDS] as number;
  }

  /** From `first` to `last`, both included. */
  column(first: number, last: number): number[] {
    const column: number[] = [];
    for (let second = first; second <= last; second += 1) column.push(this.at(second));
    return column;
  }

  mean(first: number, last: number): number {
    let total = 0;
    for (let second = first; second <= last; second += 1) total += this.at(second);
    return last < first ? 0 : total / (last - first + 1);
  }
}

/** Counters by outcome, and what they grew by in each second. */
class Growth {
  readonly rings: readonly Ring[] = OUTCOMES.map(() => new Ring());
  #before: readonly number[];

  constructor(before: readonly number[]) {
    this.#before = before;
  }

  note(totals: readonly number[], from: number, to: number, elapsed: number): void {
    for (const [outcome, ring] of this.rings.entries()) {
      const grown = (totals[outcome] as number) - (this.#before[outcome] as number);
      for (let second = from; second <= to; second += 1) ring.set(second, grown / elapsed);
    }
    this.#before = totals;
  }

  /** Means over `first` to `last`. */
  rates(first: number, last: number): OutcomeRates {
    const [allowed, denied, shadowDenied] = this.rings as readonly [Ring, Ring, Ring];
    return [allowed.mean(first, last), denied.mean(first, last), shadowDenied.mean(first, last)];
  }
}

export class History implements PastSeconds {
  #last: number;
  #lastAt: InstantUs;
  readonly #begun: number;
  readonly #all = new Growth([0, 0, 0]);
  #byLimit = new Map<string, Growth>();
  readonly #median = new Ring();
  readonly #p99 = new Ring();
  readonly #pods = new Ring();
  readonly #keys = new Ring();
  readonly #tier = new Ring();
  #durations: readonly number[] = [];
  /** Of limits that are gone: what they decided still stands in the sum of all. */
  #gone: readonly number[] = [0, 0, 0];
  #limitTotals: ReadonlyMap<string, readonly number[]> = new Map();

  constructor(now: InstantUs) {
    this.#lastAt = now;
    this.#last = secondOf(now);
    this.#begun = this.#last + 1;
  }

  /** The latest second that is known. */
  get last(): number {
    return this.#last;
  }

  /**
   * Takes down what happened since the last call; to be called once a second. After a standstill
   * the growth is spread over the seconds that were missed.
   */
  record(now: InstantUs, counts: Counts, durations: readonly DurationCounts[]): void {
    const to = secondOf(now);
    if (to <= this.#last) return;
    const from = Math.max(this.#last + 1, to - HISTORY_SECONDS + 1);
    const elapsed = (now - this.#lastAt) / US_PER_SECOND;
    this.#recordDecisions(counts, from, to, elapsed);
    const grown = this.#grownDurations(durations);
    const tier = STORE_TIERS.indexOf(storeTierOf(counts));
    for (let second = from; second <= to; second += 1) {
      this.#median.set(second, quantileUs(grown, 0.5) / US_PER_MS);
      this.#p99.set(second, quantileUs(grown, 0.99) / US_PER_MS);
      this.#pods.set(second, counts.pods);
      this.#keys.set(second, counts.trackedKeys);
      this.#tier.set(second, tier);
    }
    this.#last = to;
    this.#lastAt = now;
  }

  /** Decisions per second lately, of one limit or of all. */
  rates(limit?: string): OutcomeRates {
    const first = Math.max(this.#oldest, this.#last - RATE_SECONDS + 1);
    return this.#growth(limit)?.rates(first, this.#last) ?? NO_RATES;
  }

  /** The last five minutes of a limit in 60 means, oldest first: admitted, and denied. */
  outline(limit: string): { readonly admitted: number[]; readonly denied: number[] } {
    const [allowed, denied, shadowDenied] = this.#growth(limit)?.rings ?? [];
    const outline = { admitted: [] as number[], denied: [] as number[] };
    if (allowed === undefined || denied === undefined || shadowDenied === undefined) return outline;
    const newest = Math.floor(this.#last / OUTLINE_SECONDS);
    for (let part = newest - HISTORY_SECONDS / OUTLINE_SECONDS + 1; part <= newest; part += 1) {
      const first = Math.max(part * OUTLINE_SECONDS, this.#oldest);
      const last = Math.min(part * OUTLINE_SECONDS + OUTLINE_SECONDS - 1, this.#last);
      outline.admitted.push(allowed.mean(first, last) + shadowDenied.mean(first, last));
      outline.denied.push(denied.mean(first, last));
    }
    return outline;
  }

  /**
   * @param after - The last second that is known already.
   * @param limit - Whose decisions to tell; those of all limits when left out.
   */
  columns(after: number, limit?: string): HistoryColumns {
    const first = Math.max(after + 1, this.#oldest);
    const column = (ring: Ring | undefined): number[] =>
      ring === undefined
        ? Array.from({ length: Math.max(0, this.#last - first + 1) }, () => 0)
        : ring.column(first, this.#last);
    const [allowed, denied, shadowDenied] = this.#growth(limit)?.rings ?? [];
    return {
      first,
      allowed: column(allowed),
      denied: column(denied),
      shadowDenied: column(shadowDenied),
      medianMs: column(this.#median),
      p99Ms: column(this.#p99),
      pods: column(this.#pods),
      trackedKeys: column(this.#keys),
      tier: column(this.#tier),
    };
  }

  get #oldest(): number {
    return Math.max(this.#begun, this.#last - HISTORY_SECONDS + 1);
  }

  #growth(limit: string | undefined): Growth | undefined {
    return limit === undefined ? this.#all : this.#byLimit.get(limit);
  }

  #recordDecisions({ limits }: Counts, from: number, to: number, elapsed: number): void {
    const totals = new Map(limits.map(({ name, tally }) => [name, totalsOf(tally)]));
    for (const [name, before] of this.#limitTotals) {
      if (!totals.has(name)) this.#gone = sum([this.#gone, before]);
    }
    const byLimit = new Map<string, Growth>();
    for (const [name, total] of totals) {
      const known = this.#byLimit.get(name);
      const isNew = known === undefined && byLimit.size < LIMITS_MAX && total.some((n) => n > 0);
      const growth = isNew ? new Growth(this.#limitTotals.get(name) ?? [0, 0, 0]) : known;
      if (growth === undefined) continue;
      growth.note(total, from, to, elapsed);
      byLimit.set(name, growth);
    }
    this.#byLimit = byLimit;
    this.#limitTotals = totals;
    this.#all.note(sum([this.#gone, ...totals.values()]), from, to, elapsed);
  }

  #grownDurations(durations: readonly DurationCounts[]): number[] {
    const totals = Array.from({ length: BUCKETS_US.length + 1 }, (_, bucket) =>
      durations.reduce((total, { counts }) => total + (counts[bucket] ?? 0), 0),
    );
    const grown = totals.map((total, bucket) => total - (this.#durations[bucket] ?? 0));
    this.#durations = totals;
    return grown;
  }
}

function secondOf(now: InstantUs): number {
  return Math.floor(now / US_PER_SECOND);
}

/** Decisions by outcome, from whichever source. */
function totalsOf({ decisions }: Tally): readonly number[] {
  const totals = [0, 0, 0];
  for (let cell = 0; cell < decisions.length; cell += 1) {
    const outcome = Math.floor(cell / SOURCES.length);
    totals[outcome] = (totals[outcome] as number) + (decisions[cell] as number);
  }
  return totals;
}

function sum(all: readonly (readonly number[])[]): readonly number[] {
  const totals = [0, 0, 0];
  for (const each of all) {
    for (let outcome = 0; outcome < totals.length; outcome += 1) {
      totals[outcome] = (totals[outcome] as number) + (each[outcome] as number);
    }
  }
  return totals;
}

/** Even within a bucket; NaN without any. What is longer than all buckets counts as the longest. */
function quantileUs(counts: readonly number[], part: number): DurationUs {
  const total = counts.reduce((all, count) => all + count, 0);
  if (total === 0) return Number.NaN;
  let below = 0;
  for (const [bucket, count] of counts.entries()) {
    const lower = BUCKETS_US[bucket - 1] ?? 0;
    const upper = BUCKETS_US[bucket] ?? lower;
    if (count > 0 && below + count >= part * total) {
      return lower + ((upper - lower) * (part * total - below)) / count;
    }
    below += count;
  }
  return BUCKETS_US.at(-1) ?? 0;
}
