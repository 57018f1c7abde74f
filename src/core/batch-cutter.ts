/** Cuts the due rows of a lane into its next batch. */
import { type BucketTable, DUE, FALLBACK, HELD, IN_FLIGHT } from "./bucket-table.ts";
import { BATCH_ENTRIES_MAX, ENTRY_FIELDS } from "./exchange.ts";
import type { FallbackBuckets } from "./fallback-buckets.ts";
import type { HeldChecks } from "./held-checks.ts";
import { type CutTerms, cutRow } from "./hybrid-exchange.ts";
import { ISOLATED_AT } from "./hybrid-row.ts";
import type { Lane, Orphan } from "./lane.ts";
import type { Limit } from "./limit.ts";
import type { RowSchedule } from "./row-schedule.ts";
import type { StoreDecided } from "./store-decided.ts";
import type { InstantUs } from "./units.ts";

export interface BatchCutterParts {
  readonly table: BucketTable;
  readonly fallback: FallbackBuckets;
  readonly held: HeldChecks;
  readonly schedule: RowSchedule;
  readonly storeDecided: StoreDecided;
}

export class BatchCutter {
  readonly #parts: BatchCutterParts;
  /** Rows of the batch that is being cut. */
  readonly #taken = new Int32Array(BATCH_ENTRIES_MAX);

  constructor(parts: BatchCutterParts) {
    this.#parts = parts;
  }

  /** Cuts due rows into a batch. @returns Whether there is one. */
  cut(lane: Lane, now: InstantUs, isLeaving: boolean): boolean {
    const { table } = this.#parts;
    const orphans = lane.orphans.splice(0, BATCH_ENTRIES_MAX / 2);
    const rows = this.#takeDue(lane, BATCH_ENTRIES_MAX - orphans.length);
    const size = rows + orphans.length;
    if (size === 0) return false;
    const entries = new Float64Array(size * ENTRY_FIELDS);
    const slots = this.#taken.slice(0, size);
    const limits = new Array<Limit>(size);
    const keys = new Array<string>(size);
    const { rttUs, epoch } = lane;
    const terms = { now, rttUs, epoch, heldCost: 0, leaving: isLeaving };
    for (let i = 0; i < rows; i += 1) {
      const slot = slots[i] as number;
      this.#cutSlot(lane, slot, terms, entries, i);
      limits[i] = table.limitOf(slot);
      keys[i] = table.keyOf(slot);
    }
    for (let i = rows; i < size; i += 1) {
      const { entry, limit, key } = orphans[i - rows] as Orphan;
      entries.set(entry, i * ENTRY_FIELDS);
      slots[i] = -1;
      limits[i] = limit;
      keys[i] = key;
    }
    lane.batch = {
      seq: lane.nextSeq(),
      slots,
      limits,
      keys,
      entries,
      cutAt: now,
      firstSentAt: now,
      sends: 0,
    };
    lane.unansweredSince = Math.min(lane.unansweredSince, now);
    return true;
  }

  /** Takes due rows into `#taken`. @returns How many. */
  #takeDue(lane: Lane, most: number): number {
    const { table, schedule } = this.#parts;
    let taken = 0;
    while (taken < most) {
      const slot = lane.urgent.shift() ?? lane.due.shift();
      if (slot === undefined) break;
      const flags = table.flags[slot] as number;
      const isCurrent = (flags & DUE) !== 0 && table.isLive(slot) && schedule.laneOf(slot) === lane;
      if (!isCurrent) continue;
      table.flags[slot] = (flags & ~(DUE | HELD)) | IN_FLIGHT;
      this.#taken[taken] = slot;
      taken += 1;
    }
    return taken;
  }

  #cutSlot(lane: Lane, slot: number, terms: CutTerms, entries: Float64Array, i: number): void {
    const { table, held, fallback } = this.#parts;
    table.wake(slot);
    const isolatedAt = table.cells[table.at(slot) + ISOLATED_AT] as number;
    const wasIsolated = ((table.flags[slot] as number) & FALLBACK) !== 0;
    if (wasIsolated && lane.recoveredAt > isolatedAt) {
      const isPrepaid = table.limitOf(slot).mode !== "hybrid";
      if (isPrepaid) this.#parts.storeDecided.recover(slot, terms.now);
      else fallback.settle(slot, lane.outageUs, terms.now);
    }
    terms.heldCost = 0;
    if (held.isWaitedFor(slot)) {
      terms.heldCost = held.costOf(slot);
      held.noteCut(slot);
    }
    cutRow(table, slot, terms, entries, i * ENTRY_FIELDS);
  }
}
