/**
 * What is done to rows besides deciding: forgetting idle ones, following a changed limit,
 * counting.
 */
import {
  type Book,
  type BucketTable,
  CALLING,
  DUE,
  FALLBACK,
  HELD,
  IN_FLIGHT,
} from "./bucket-table.ts";
import { level } from "./deficit-bucket.ts";
import { deficitOn, rescaleExact, touchExact } from "./exact-row.ts";
import type { FallbackBuckets } from "./fallback-buckets.ts";
import type { FleetSize } from "./fleet-size.ts";
import { forgetFullAt, isSameShape } from "./full-at.ts";
import { type HybridBuckets, isSameInRow } from "./hybrid.ts";
import { IN_FLIGHT_TOKENS, LEVEL, SHARE, UNREPORTED } from "./hybrid-row.ts";
import type { Limit } from "./limit.ts";
import type { RowSchedule } from "./row-schedule.ts";
import type { StoreCalls } from "./store-calls.ts";
import type { LimitFigures } from "./tally.ts";
import { type DurationUs, type InstantUs, type Tokens, US_PER_MS, US_PER_SECOND } from "./units.ts";

/** A key not used for so long that has nothing to tell is forgotten. */
export const IDLE_US: DurationUs = 5 * US_PER_SECOND;
/** A row not used for so long rests. */
const REST_US: DurationUs = US_PER_SECOND;
/** Idle rows are looked for in steps, one part of the table at a time. */
const SWEEP_STEP_US: DurationUs = 250 * US_PER_MS;
const SWEEP_PARTS = 20;

export interface HousekeepingParts {
  readonly sole: boolean;
  readonly table: BucketTable;
  readonly hybrid: HybridBuckets;
  readonly fallback: FallbackBuckets;
  readonly fleet: FleetSize;
  readonly schedule: RowSchedule;
  readonly calls: StoreCalls;
}

export class Housekeeping {
  readonly #parts: HousekeepingParts;
  #nextAt: InstantUs;
  #sweepFrom = 0;

  constructor(parts: HousekeepingParts, now: InstantUs) {
    this.#parts = parts;
    this.#nextAt = now + SWEEP_STEP_US;
  }

  /** When to sweep next; Infinity while there is no row. */
  get sweepAt(): InstantUs {
    return this.#parts.table.size > 0 ? this.#nextAt : Number.POSITIVE_INFINITY;
  }

  /** Puts a live row under changed numbers: its level is scaled, nothing is lost or given. */
  relimit(slot: number, to: Limit, now: InstantUs): void {
    const from = this.#parts.table.limitOf(slot);
    if (from === to) return;
    // A reload makes every limit anew, also those that it does not change.
    if (!this.#parts.table.isAwake(slot) && from.mode === to.mode && isSameInRow(from, to)) {
      this.#parts.table.setLimit(slot, to);
      return;
    }
    this.#parts.table.wake(slot);
    if (this.#parts.sole) {
      touchExact(this.#parts.table, slot, from, now);
      rescaleExact(this.#parts.table, slot, from, to, now);
    } else {
      const isAlone = ((this.#parts.table.flags[slot] as number) & FALLBACK) !== 0;
      if (isAlone) this.#parts.fallback.relimit(slot, to, now);
      else this.#parts.hybrid.relimit(this.#parts.table.at(slot), from, to, now);
      if (from.mode !== to.mode) this.#leaveMode(slot, from);
      if (!isSameShape(from, to)) forgetFullAt(this.#parts.table, slot);
    }
    this.#parts.table.setLimit(slot, to);
  }

  /** The old mode tells its last: stock and leases go back, what was spent is reported. */
  #leaveMode(slot: number, from: Limit): void {
    const { hybrid, schedule, calls } = this.#parts;
    if (from.mode === "leased") calls.returnLeases(slot);
    if (from.mode !== "hybrid") return;
    hybrid.release(this.#parts.table.at(slot));
    schedule.markDue(slot);
  }

  /** Forgets rows that have been idle and have nothing to tell, one part of the table at a time. */
  sweep(now: InstantUs): void {
    this.#nextAt = now + SWEEP_STEP_US;
    const rows = this.#parts.table.rows;
    const steps = Math.ceil(rows / SWEEP_PARTS);
    for (let step = 0; step < steps; step += 1) {
      const slot = this.#sweepFrom;
      this.#sweepFrom = slot + 1 >= rows ? 0 : slot + 1;
      if (!this.#parts.table.isLive(slot)) continue;
      if (!this.#isForgettable(slot, now)) {
        this.#restIfIdle(slot, now);
        continue;
      }
      this.#parts.calls.forget(slot);
      this.#parts.table.remove(slot);
    }
  }

  #restIfIdle(slot: number, now: InstantUs): void {
    const { table } = this.#parts;
    if (table.isAwake(slot) && now - table.usedAt(slot) > REST_US) table.rest(slot, now);
  }

  #isForgettable(slot: number, now: InstantUs): boolean {
    const { table } = this.#parts;
    const { cells } = table;
    if (this.#parts.sole) return deficitOn(table, slot, table.limitOf(slot), now) === 0;
    const flags = table.flags[slot] as number;
    const busy = DUE | IN_FLIGHT | HELD | CALLING;
    if ((flags & busy) !== 0 || this.#parts.calls.holdsLease(slot)) return false;
    if (table.isAwake(slot) && cells[table.at(slot) + UNREPORTED] !== 0) return false;
    if (now - table.usedAt(slot) <= IDLE_US) return false;
    // A fallback bucket that is forgotten would come back full.
    return (flags & FALLBACK) === 0 || this.#parts.fallback.wouldBeFull(slot, now);
  }

  figuresOf(book: Book, now: InstantUs): LimitFigures {
    const { name } = book.limit;
    const { tally } = book;
    if (this.#parts.sole) {
      return { name, tally, unreconciled: 0, debt: this.#soleDebt(book, now), share: 1 };
    }
    const { table, fleet } = this.#parts;
    let unreconciled = 0;
    let debt = 0;
    let shares = 0;
    for (const slot of book.slots.values()) {
      if (!table.isAwake(slot)) {
        debt = Math.max(debt, -table.rested.level(slot));
        shares += table.rested.share(slot);
        continue;
      }
      const { cells } = table;
      const at = table.at(slot);
      unreconciled += (cells[at + UNREPORTED] as number) + (cells[at + IN_FLIGHT_TOKENS] as number);
      debt = Math.max(debt, -(cells[at + LEVEL] as number));
      shares += cells[at + SHARE] as number;
    }
    const equal = 1 / fleet.pods(book.limit.fallback.maxPods);
    const share = book.slots.size === 0 ? equal : shares / book.slots.size;
    return { name, tally, unreconciled, debt, share };
  }

  #soleDebt({ slots }: Book, now: InstantUs): Tokens {
    const { table } = this.#parts;
    let debt = 0;
    for (const slot of slots.values()) {
      const limit = table.limitOf(slot);
      debt = Math.max(debt, -level(limit, deficitOn(table, slot, limit, now)));
    }
    return debt;
  }
}
