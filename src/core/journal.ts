/**
 * What a lane has reported lately, to repair a failover.
 *
 * Replication to a replica is a prefix of the writes: after a failover the keys and the sequence
 * record regress together. The reply then names an older batch as the last one applied, and what
 * was acknowledged since is reported again, unless the bucket has refilled since whatever it lacked
 * then: such a report would charge a failover that came late in an outage twice. After a data loss
 * nothing is reported again: a key that starts anew already starts below full.
 */
import { type BatchReply, ENTRY, ENTRY_FIELDS, REPLY, REPLY_FIELDS } from "./exchange.ts";
import type { CutBatch } from "./lane.ts";
import type { Limit } from "./limit.ts";
import { type DurationUs, type InstantUs, type Tokens, US_PER_SECOND } from "./units.ts";

/** Batches remembered at most, and for how long: longer than a replica lags. */
const BATCHES_MAX = 50;
const LIFE_US: DurationUs = 5 * US_PER_SECOND;
/**
 * So long after a batch was acknowledged the store still knows its number, even when the batch had
 * been applied as long before as one is sent (`BATCH_LIFE_US` of the ten minutes).
 */
const KNOWN_US: DurationUs = 240 * US_PER_SECOND;

interface Report {
  readonly limit: Limit;
  readonly key: string;
  readonly consumed: Tokens;
  /** What the bucket lacked when this was acknowledged, the report included. */
  readonly missing: number;
}

interface Acknowledged {
  readonly seq: number;
  readonly epoch: number;
  readonly at: InstantUs;
  readonly reports: readonly Report[];
}

/** The circumstances under which the store was heard again. */
export interface Return {
  readonly now: InstantUs;
  /**
   * The store had not come back by then. The time since counts for nothing: what it refills is
   * credited to what is reported meanwhile.
   */
  readonly absentAt: InstantUs;
  /** Part of the rate that refills, 1 or less. */
  readonly refill: number;
}

export class Journal {
  #batches: Acknowledged[] = [];

  /** A batch was acknowledged by this reply. */
  note(batch: CutBatch, reply: Pick<BatchReply, "epoch" | "entries">, now: InstantUs): void {
    const { epoch } = reply;
    const reports: Report[] = [];
    for (const [i, limit] of batch.limits.entries()) {
      const consumed = batch.entries[i * ENTRY_FIELDS + ENTRY.consumed] as number;
      const missing = limit.burst - (reply.entries[i * REPLY_FIELDS + REPLY.level] as number);
      if (consumed !== 0) reports.push({ limit, key: batch.keys[i] as string, consumed, missing });
    }
    this.#batches = this.#batches.filter((past) => past.epoch === epoch && now - past.at < LIFE_US);
    this.#batches.push({ seq: batch.seq, epoch, at: now, reports });
    if (this.#batches.length > BATCHES_MAX) this.#batches.shift();
  }

  /**
   * Takes what the store has forgotten: everything acknowledged after the batch that it names as
   * the last one applied, and what has not been refilled anyway before the store came back.
   *
   * @returns One report per limit and key.
   */
  takeMissing(previousSeq: number, epoch: number, { now, absentAt, refill }: Return): Report[] {
    const missing = this.#batches.filter(
      ({ seq, epoch: under, at }) =>
        seq > previousSeq &&
        under === epoch &&
        // After a long pause the store knows no number any more, and has lost nothing.
        (previousSeq > 0 || now - at < KNOWN_US),
    );
    if (missing.length === 0) return [];
    this.#batches = this.#batches.filter((past) => past.seq <= previousSeq);
    const byKey = new Map<string, Report>();
    const owed = missing.flatMap(({ at, reports }) => {
      const seconds = (refill * (absentAt - at)) / US_PER_SECOND;
      return reports.filter((report) => report.limit.rate * seconds < report.missing);
    });
    for (const report of owed) {
      const name = `${report.limit.name}\0${report.key}`;
      const before = byKey.get(name)?.consumed ?? 0;
      byKey.set(name, { ...report, consumed: before + report.consumed });
    }
    return [...byKey.values()].filter(({ consumed }) => consumed !== 0);
  }
}
