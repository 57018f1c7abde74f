/**
 * What a lane has reported lately, to repair a failover.
 *
 * Replication to a replica is a prefix of the writes: after a failover the keys and the sequence
 * record regress together. The reply then names an older batch as the last one applied, and what
 * was acknowledged since is reported again. After a data loss nothing is: a key that starts anew
 * already starts below full.
 */
import { ENTRY, ENTRY_FIELDS } from "./exchange.ts";
import type { CutBatch } from "./lane.ts";
import type { Limit } from "./limit.ts";
import { type DurationUs, type InstantUs, type Tokens, US_PER_SECOND } from "./units.ts";

/** Batches remembered at most, and for how long: longer than a replica lags. */
const BATCHES_MAX = 50;
const LIFE_US: DurationUs = 5 * US_PER_SECOND;

interface Report {
  readonly limit: Limit;
  readonly key: string;
  readonly consumed: Tokens;
}

interface Acknowledged {
  readonly seq: number;
  readonly epoch: number;
  readonly at: InstantUs;
  readonly reports: readonly Report[];
}

export class Journal {
  #batches: Acknowledged[] = [];

  /** A batch was acknowledged under this epoch. */
  note(batch: CutBatch, epoch: number, now: InstantUs): void {
    const reports: Report[] = [];
    for (const [i, limit] of batch.limits.entries()) {
      const consumed = batch.entries[i * ENTRY_FIELDS + ENTRY.consumed] as number;
      if (consumed !== 0) reports.push({ limit, key: batch.keys[i] as string, consumed });
    }
    this.#batches = this.#batches.filter((past) => past.epoch === epoch && now - past.at < LIFE_US);
    this.#batches.push({ seq: batch.seq, epoch, at: now, reports });
    if (this.#batches.length > BATCHES_MAX) this.#batches.shift();
  }

  /**
   * Takes what the store has forgotten: everything acknowledged after the batch that it names as
   * the last one applied.
   *
   * @returns One report per limit and key.
   */
  takeMissing(previousSeq: number, epoch: number): Report[] {
    const missing = this.#batches.filter((past) => past.seq > previousSeq && past.epoch === epoch);
    if (missing.length === 0) return [];
    this.#batches = this.#batches.filter((past) => past.seq <= previousSeq);
    const byKey = new Map<string, Report>();
    for (const report of missing.flatMap(({ reports }) => reports)) {
      const name = `${report.limit.name}\0${report.key}`;
      const before = byKey.get(name)?.consumed ?? 0;
      byKey.set(name, { ...report, consumed: before + report.consumed });
    }
    return [...byKey.values()].filter(({ consumed }) => consumed !== 0);
  }
}
