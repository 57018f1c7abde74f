/** Cuts the due rows of a lane into its next batch. */
import { type BucketTable, DUE, FALLBACK, HELD, IN_FLIGHT } from "./bucket-table.ts";
import { BATCH_ENTRIES_MAX, ENTRY_FIELDS } from "./exchange.ts";
import type { FallbackBuckets } from "./fallback-buckets.ts";
import type { HeldChecks } from "./held-checks.ts";
import { cutRow } from "./hybrid-exchange.ts";
import { ISOLATED_AT } from "./hybrid-row.ts";
import type { Lane } from "./lane.ts";
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

  constructor(parts: BatchCutterParts) {
    this.#parts = parts;
  }

  /** Cuts due rows into a batch. @returns Whether there is one. */
  cut(lane: Lane, now: InstantUs, isLeaving: boolean): boolean {
    const { table } = this.#parts;
    const orphans = lane.orphans.splice(0, BATCH_ENTRIES_MAX / 2);
    const slots = this.#takeDue(lane, BATCH_ENTRIES_MAX - orphans.length);
    const size = slots.length + orphans.length;
    if (size === 0) return false;
    const entries = new Float64Array(size * ENTRY_FIELDS);
    for (const [i, slot] of slots.entries()) this.#cutSlot(lane, slot, now, isLeaving, entries, i);
    for (const [i, orphan] of orphans.entries()) {
      entries.set(orphan.entry, (slots.length + i) * ENTRY_FIELDS);
    }
    lane.batch = {
      seq: lane.nextSeq(),
      slots: Int32Array.from([...slots, ...orphans.map(() => -1)]),
      limits: [...slots.map((slot) => table.limitOf(slot)), ...orphans.map(({ limit }) => limit)],
      keys: [...slots.map((slot) => table.keyOf(slot)), ...orphans.map(({ key }) => key)],
      entries,
      cutAt: now,
      firstSentAt: now,
      sends: 0,
    };
    lane.unansweredSince = Math.min(lane.unansweredSince, now);
    return true;
  }

  #takeDue(lane: Lane, most: number): number[] {
    const { table, schedule } = this.#parts;
    const slots: number[] = [];
    while (slots.length < most) {
      const slot = lane.urgent.shift() ?? lane.due.shift();
      if (slot === undefined) break;
      const flags = table.flags[slot] as number;
      const isCurrent = (flags & DUE) !== 0 && table.isLive(slot) && schedule.laneOf(slot) === lane;
      if (!isCurrent) continue;
      table.flags[slot] = (flags & ~(DUE | HELD)) | IN_FLIGHT;
      slots.push(slot);
    }
    return slots;
  }

  #cutSlot(
    lane: Lane,
    slot: number,
    now: InstantUs,
    isLeaving: boolean,
    entries: Float64Array,
    i: number,
  ): void {
    const { table, held, fallback } = this.#parts;
    table.wake(slot);
    const isolatedAt = table.cells[table.at(slot) + ISOLATED_AT] as number;
    const wasIsolated = ((table.flags[slot] as number) & FALLBACK) !== 0;
    if (wasIsolated && lane.recoveredAt > isolatedAt) {
      const isPrepaid = table.limitOf(slot).mode !== "hybrid";
      if (isPrepaid) this.#parts.storeDecided.recover(slot, now);
      else fallback.settle(slot, lane.outageUs, now);
    }
    const heldCost = held.costOf(slot);
    held.noteCut(slot);
    const terms = { now, rttUs: lane.rttUs, epoch: lane.epoch, heldCost, leaving: isLeaving };
    cutRow(table, slot, terms, entries, i * ENTRY_FIELDS);
  }
}
