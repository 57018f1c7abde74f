/**
 * Cuts the due rows of a lane into its next batch, and the reports of rows that are gone. No key
 * comes twice: the store reads all keys of a batch before it writes the first one.
 */
import { type BucketTable, DUE, FALLBACK, HELD, IN_FLIGHT } from "./bucket-table.ts";
import { BATCH_ENTRIES_MAX, ENTRY, ENTRY_FIELDS } from "./exchange.ts";
import type { FallbackBuckets } from "./fallback-buckets.ts";
import type { HeldChecks } from "./held-checks.ts";
import { type CutTerms, cutRow } from "./hybrid-exchange.ts";
import { DEMAND, ISOLATED_AT, UNREPORTED } from "./hybrid-row.ts";
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
    const orphans = joined(lane.orphans.splice(0, BATCH_ENTRIES_MAX / 2));
    const rows = this.#takeDue(lane, BATCH_ENTRIES_MAX - orphans.length);
    const apart = orphans.length === 0 ? orphans : this.#joinRows(orphans, rows);
    const size = rows + apart.length;
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
      const { entry, limit, key } = apart[i - rows] as Orphan;
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

  /**
   * Lets rows that are taken tell what reports of their keys have left. @returns The other reports.
   */
  #joinRows(orphans: readonly Orphan[], rows: number): readonly Orphan[] {
    const { table } = this.#parts;
    const slots = new Map<string, number>();
    for (const slot of this.#taken.subarray(0, rows)) {
      slots.set(nameOf(table.limitOf(slot), table.keyOf(slot)), slot);
    }
    return orphans.filter(({ limit, key, entry }) => {
      const slot = slots.get(nameOf(limit, key));
      if (slot === undefined) return true;
      table.wake(slot);
      const at = table.at(slot);
      const { cells } = table;
      cells[at + UNREPORTED] = (cells[at + UNREPORTED] as number) + (entry[ENTRY.consumed] ?? 0);
      cells[at + DEMAND] = (cells[at + DEMAND] as number) + (entry[ENTRY.demand] ?? 0);
      return false;
    });
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

/** Reports of one key as one, which tells what all of them consumed and asked for. */
function joined(orphans: readonly Orphan[]): readonly Orphan[] {
  if (orphans.length < 2) return orphans;
  const byName = new Map<string, Orphan>();
  for (const orphan of orphans) {
    const name = nameOf(orphan.limit, orphan.key);
    const first = byName.get(name);
    if (first === undefined) byName.set(name, orphan);
    else {
      for (const field of [ENTRY.consumed, ENTRY.demand]) {
        first.entry[field] = (first.entry[field] ?? 0) + (orphan.entry[field] ?? 0);
      }
    }
  }
  return [...byName.values()];
}

function nameOf({ name }: Limit, key: string): string {
  return `${name}\0${key}`;
}
