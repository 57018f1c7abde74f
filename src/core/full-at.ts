/**
 * Until when a bucket cannot be full again, as the store last told.
 *
 * To the store an absent key is a full one. A pod that was told a level knows better for a while,
 * and says so with each entry: when the key is gone before that time, the server has evicted it, or
 * somebody has deleted it, and the store starts it low (`lua/lib/key-state.lua`).
 *
 * What the pod has spent since only makes the bucket full later, so it is left out. A word is
 * worth something in its epoch only, whose clock it is told by, and for the numbers of the limit
 * that the level was told of.
 */
import type { BucketTable } from "./bucket-table.ts";
import { EPOCH, FULL_AT, LEVEL, OWN_DEMAND, REPLIED_AT } from "./hybrid-row.ts";
import type { BucketShape } from "./limit.ts";
import type { InstantUs } from "./units.ts";

/** Nothing is known. */
export const NO_FULL_AT: InstantUs = 0;

/**
 * The store time before which a bucket of `level` at store time `storeNow` cannot be full.
 *
 * The store refills whole ticks, so it may be up to a tick ahead of its own time.
 */
export function fullAfter(
  { refill, period, tickUs, burst }: Pick<BucketShape, "refill" | "period" | "tickUs" | "burst">,
  level: number,
  storeNow: InstantUs,
): InstantUs {
  const ticks = Math.floor(((burst - level) * period) / refill) - 1;
  return ticks > 0 ? storeNow + ticks * tickUs : NO_FULL_AT;
}

/**
 * Notes the level that `told` holds at `levelAt`, at the store time of the row's last reply. It is
 * read here, because a number that is handed over would be allocated.
 */
export function noteFullAt(
  cells: Float64Array,
  at: number,
  limit: BucketShape,
  told: Float64Array,
  levelAt: number,
): void {
  cells[at + FULL_AT] = fullAfter(limit, told[levelAt] as number, cells[at + REPLIED_AT] as number);
}

/** Whether the row knows what follows from the level and the time of its last reply, no other. */
export function isFullAtDerived(cells: Float64Array, at: number, limit: BucketShape): boolean {
  const level = cells[at + LEVEL] as number;
  return cells[at + FULL_AT] === fullAfter(limit, level, cells[at + REPLIED_AT] as number);
}

/** What the row knows, for an entry that is sent under this epoch. The row is awake. */
export function knownFullAt(table: BucketTable, slot: number, epoch: number): InstantUs {
  const at = table.at(slot);
  return table.cells[at + EPOCH] === epoch ? (table.cells[at + FULL_AT] as number) : NO_FULL_AT;
}

/** A level that the reply to a call told. `limit` is the one that the call was worded for. */
export function noteCallLevel(
  table: BucketTable,
  slot: number,
  told: {
    readonly limit: BucketShape;
    readonly level: number;
    readonly storeNow: InstantUs;
    readonly epoch: number;
  },
): void {
  table.wake(slot);
  const { cells } = table;
  const at = table.at(slot);
  const { limit, level, storeNow, epoch } = told;
  if (cells[at + EPOCH] !== epoch) {
    cells[at + EPOCH] = epoch;
    // Told under another epoch.
    cells[at + OWN_DEMAND] = 0;
  }
  const isSame = isSameShape(limit, table.limitOf(slot));
  cells[at + FULL_AT] = isSame ? fullAfter(limit, level, storeNow) : NO_FULL_AT;
}

/** What was told is of other numbers than the row's limit has now. The row is awake. */
export function forgetFullAt(table: BucketTable, slot: number): void {
  table.cells[table.at(slot) + FULL_AT] = NO_FULL_AT;
}

/** Whether two limits keep a bucket by the same numbers. */
export function isSameShape(one: BucketShape, other: BucketShape): boolean {
  return (
    one === other ||
    (one.refill === other.refill &&
      one.period === other.period &&
      one.tickUs === other.tickUs &&
      one.burst === other.burst)
  );
}
