/**
 * One check on its way through a decision.
 *
 * A check stands on one of these footings. `sole`: no store, an ideal bucket. `hybrid`: flow and
 * stock of this pod. `fallback`: the store is out of reach and the limit is decided locally, more
 * strictly. `open`, `closed`: the same with the limit's other policies. `full`: no row is to be had.
 */
import type { Book } from "./bucket-table.ts";
import type { Check } from "./decision.ts";
import type { Limit } from "./limit.ts";
import type { Tokens } from "./units.ts";

export type Footing = "sole" | "hybrid" | "fallback" | "open" | "closed" | "full";

/** Seats are used again for each decision; nothing is kept in them. */
export class Seat {
  check!: Check;
  /** The limit in force for the key. */
  limit!: Limit;
  book!: Book;
  /** -1 when the key has no row (a peek makes none). */
  slot = -1;
  footing: Footing = "sole";
  passed = false;
  fromStock: Tokens = 0;
}
