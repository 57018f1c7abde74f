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

/** What is to be reported again. */
interface Report {
  readonly limit: Limit;
  readonly key: string;
  readonly consumed: Tokens;
}

/** An acknowledged batch, and for each entry what it reported and what the bucket lacked then. */
interface Acknowledged {
  readonly seq: number;
  readonly epoch: number;
  readonly at: InstantUs;
  readonly limits: readonly Limit[];
  readonly keys: readonly string[];
  /** `CONSUMED` and `MISSING` of each entry. */
  readonly reports: Float64Array;
}

const CONSUMED = 0;
/** What the bucket lacked when this was acknowledged, the report included. */
const MISSING = 1;
const REPORT_FIELDS = 2;

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
    const { seq, limits, keys } = batch;
    const reports = new Float64Array(limits.length * REPORT_FIELDS);
    for (let i = 0; i < limits.length; i += 1) {
      const { burst } = limits[i] as Limit;
      const consumed = batch.entries[i * ENTRY_FIELDS + ENTRY.consumed] as number;
      const level = reply.entries[i * REPLY_FIELDS + REPLY.level] as number;
      reports[i * REPORT_FIELDS + CONSUMED] = consumed;
      reports[i * REPORT_FIELDS + MISSING] = burst - level;
    }
    if (this.#batches.some((past) => past.epoch !== epoch)) this.#batches = [];
    while (this.#batches.length > 0 && now - (this.#batches[0] as Acknowledged).at >= LIFE_US) {
      this.#batches.shift();
    }
    this.#batches.push({ seq, epoch, at: now, limits, keys, reports });
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
    for (const { at, limits, keys, reports } of missing) {
      const seconds = (refill * (absentAt - at)) / US_PER_SECOND;
      for (const [i, limit] of limits.entries()) {
        const consumed = reports[i * REPORT_FIELDS + CONSUMED] as number;
        const isRefilled = limit.rate * seconds >= (reports[i * REPORT_FIELDS + MISSING] as number);
        if (consumed === 0 || isRefilled) continue;
        const key = keys[i] as string;
        const name = `${limit.name}\0${key}`;
        const before = byKey.get(name)?.consumed ?? 0;
        byKey.set(name, { limit, key, consumed: before + consumed });
      }
    }
    return [...byKey.values()].filter(({ consumed }) => consumed !== 0);
  }
}
