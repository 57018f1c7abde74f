/** The exact bucket of a row: its deficit, and the tick for which that was computed. */
import { type BucketTable, DEFICIT, DEFICIT_TICKS, USED_AT } from "./bucket-table.ts";
import {
  charged,
  covers,
  refilled,
  reshaped,
  toTicks,
  waitFor,
  wholeTokens,
} from "./deficit-bucket.ts";
import type { BucketShape } from "./limit.ts";
import type { DurationUs, InstantUs, Tokens } from "./units.ts";

/** Brings the bucket to `now`; an instant before the last one changes nothing. */
export function touchExact(
  table: BucketTable,
  slot: number,
  shape: BucketShape,
  now: InstantUs,
): void {
  const { cells } = table;
  const at = table.at(slot);
  const ticks = toTicks(shape, now);
  const since = ticks - (cells[at + DEFICIT_TICKS] as number);
  if (now > (cells[at + USED_AT] as number)) cells[at + USED_AT] = now;
  if (since <= 0) return;
  cells[at + DEFICIT] = refilled(shape, cells[at + DEFICIT] as number, since);
  cells[at + DEFICIT_TICKS] = ticks;
}

/** What the bucket lacks at `now`, in token-ticks; the row is left as it is. */
export function deficitOn(
  table: BucketTable,
  slot: number,
  shape: BucketShape,
  now: InstantUs,
): number {
  const since = toTicks(shape, now) - (table.cells[table.at(slot) + DEFICIT_TICKS] as number);
  return refilled(shape, deficitAt(table, slot), since);
}

export function coversExact(
  table: BucketTable,
  slot: number,
  shape: BucketShape,
  cost: Tokens,
): boolean {
  return covers(shape, deficitAt(table, slot), cost);
}

/** Spends tokens, or returns them when negative. */
export function spendExact(
  table: BucketTable,
  slot: number,
  shape: BucketShape,
  cost: Tokens,
): void {
  table.cells[table.at(slot) + DEFICIT] = charged(shape, deficitAt(table, slot), cost);
}

export function remainingExact(table: BucketTable, slot: number, shape: BucketShape): Tokens {
  return wholeTokens(shape, deficitAt(table, slot));
}

/** The exact wait until the cost is covered; Infinity when the bucket can never hold it. */
export function waitExact(
  table: BucketTable,
  slot: number,
  shape: BucketShape,
  cost: Tokens,
  now: InstantUs,
): DurationUs {
  if (cost > shape.burst) return Number.POSITIVE_INFINITY;
  const ticksAt = table.cells[table.at(slot) + DEFICIT_TICKS] as number;
  return waitFor(shape, deficitAt(table, slot), ticksAt, cost, now);
}

/** Puts the bucket, which was touched, under another shape; see `reshaped`. */
export function rescaleExact(
  table: BucketTable,
  slot: number,
  from: BucketShape,
  to: BucketShape,
  now: InstantUs,
): void {
  const isSame =
    from.refill === to.refill &&
    from.period === to.period &&
    from.tickUs === to.tickUs &&
    from.burst === to.burst;
  if (isSame) return;
  const at = table.at(slot);
  table.cells[at + DEFICIT] = reshaped(from, to, deficitAt(table, slot));
  table.cells[at + DEFICIT_TICKS] = toTicks(to, now);
}

export function deficitAt(table: BucketTable, slot: number): number {
  return table.cells[table.at(slot) + DEFICIT] as number;
}
