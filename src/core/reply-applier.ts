/** Applies the reply to a batch to the rows that were cut into it. */
import { type BucketTable, FALLBACK, IN_FLIGHT, USED_AT } from "./bucket-table.ts";
import { type BatchReply, ENTRY, ENTRY_FIELDS, REPLY, REPLY_FIELDS } from "./exchange.ts";
import { isSameShape } from "./full-at.ts";
import type { HybridBuckets } from "./hybrid.ts";
import { applyReply } from "./hybrid-exchange.ts";
import { FLOW, FLOW_AT, ISOLATED_AT } from "./hybrid-row.ts";
import { type CutBatch, STALE_US } from "./lane.ts";
import type { Limit } from "./limit.ts";
import type { InstantUs } from "./units.ts";

/** A reply older than this many intervals grants nothing: the pod has gone on without it. */
const LATE_INTERVALS = 5;

/** The circumstances under which a reply was heard. */
export interface ReplyWhen {
  readonly now: InstantUs;
  /** When the lane had last recovered, before this reply. */
  readonly recoveredBefore: InstantUs;
  readonly isLeaving: boolean;
}

export class ReplyApplier {
  readonly #table: BucketTable;
  readonly #hybrid: HybridBuckets;

  constructor(table: BucketTable, hybrid: HybridBuckets) {
    this.#table = table;
    this.#hybrid = hybrid;
  }

  /** Whether the row of an entry is still the one that was cut; a reload may have removed it. */
  isCurrent(batch: CutBatch, i: number): boolean {
    const table = this.#table;
    const slot = batch.slots[i] as number;
    if (slot < 0 || !table.isLive(slot)) return false;
    return (
      ((table.flags[slot] as number) & IN_FLIGHT) !== 0 &&
      table.keyOf(slot) === batch.keys[i] &&
      table.limitOf(slot).name === batch.limits[i]?.name
    );
  }

  apply(batch: CutBatch, i: number, reply: BatchReply, when: ReplyWhen): void {
    const table = this.#table;
    const hybrid = this.#hybrid;
    const { now } = when;
    const slot = batch.slots[i] as number;
    const at = table.at(slot);
    const age = now - batch.firstSentAt;
    const wasIsolated = ((table.flags[slot] as number) & FALLBACK) !== 0;
    const isStale = wasIsolated && (batch.cutAt <= when.recoveredBefore || age >= STALE_US);
    const { mode, intervalUs } = table.limitOf(slot);
    const late = mode !== "hybrid" || isStale || age > LATE_INTERVALS * intervalUs;
    table.flags[slot] = (table.flags[slot] as number) & ~IN_FLIGHT;
    if (wasIsolated) {
      // The time since was the fallback bucket's; flow begins anew with this reply.
      table.cells[at + FLOW] = 0;
      table.cells[at + FLOW_AT] = now;
    } else {
      const usedAt = table.cells[at + USED_AT] as number;
      hybrid.touch(at, now, hybrid.flowRate(at));
      // A reply is not a use: an idle key must still be forgotten in time.
      table.cells[at + USED_AT] = usedAt;
    }
    if (wasIsolated && !late) {
      table.flags[slot] = (table.flags[slot] as number) & ~FALLBACK;
      table.cells[at + ISOLATED_AT] = 0;
    }
    const terms = {
      now,
      sentAt: batch.firstSentAt,
      storeNow: reply.nowUs,
      epoch: reply.epoch,
      duplicate: reply.duplicate,
      late: late || when.isLeaving,
      otherShape: !isSameShape(batch.limits[i] as Limit, table.limitOf(slot)),
    };
    applyReply(
      table,
      slot,
      terms,
      reply.entries,
      i * REPLY_FIELDS,
      batch.entries,
      i * ENTRY_FIELDS,
    );
  }

  /** Counts what the fleet spent beyond the limit, each pod the part that its own report caused. */
  tally(batch: CutBatch, i: number, reply: BatchReply): void {
    if (reply.duplicate) return;
    const { tally } = this.#table.bookOf(batch.slots[i] as number);
    const consumed = batch.entries[i * ENTRY_FIELDS + ENTRY.consumed] as number;
    const level = reply.entries[i * REPLY_FIELDS + REPLY.level] as number;
    tally.overAdmitted += Math.max(0, Math.min(consumed, -level));
    tally.countFault(reply.entries[i * REPLY_FIELDS + REPLY.fault] as number);
    tally.clipped += reply.entries[i * REPLY_FIELDS + REPLY.clipped] as number;
  }
}
