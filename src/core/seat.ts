/**
 * One check on its way through a decision.
 *
 * A check stands on one of these footings. `sole`: no store, an ideal bucket. `hybrid`: flow and
 * stock of this pod. `leased`: tokens handed to this pod beforehand. `exact`: the store decides.
 * `fallback`: the store is out of reach and the limit is decided locally, more strictly. `open`,
 * `closed`: the same with the limit's other policies. `full`: no row is to be had.
 */
import type { Book } from "./bucket-table.ts";
import type { Check } from "./decision.ts";
import type { Grant } from "./held-checks.ts";
import type { LeaseSpend } from "./lease-purse.ts";
import type { Limit } from "./limit.ts";
import type { Tier } from "./store-health.ts";
import type { CreditSpend } from "./take-account.ts";
import type { Tokens } from "./units.ts";

export type Footing =
  | "sole"
  | "hybrid"
  | "leased"
  | "exact"
  | "fallback"
  | "open"
  | "closed"
  | "full";

/** Why the store could not be asked, for a footing that needs it. */
export type Trouble = "none" | "timeout" | "overloaded";

/** Seats are used again for each decision; nothing is kept in them. */
export class Seat {
  check!: Check;
  /** The limit in force for the key. */
  limit!: Limit;
  book!: Book;
  /** -1 when the key has no row. */
  slot = -1;
  /** Where the cells of its row begin. */
  at = -1;
  /** How the pod stands with the lane of its row. */
  tier: Tier = 0;
  footing: Footing = "sole";
  passed = false;
  /** The store was asked for this check; what is known now must do. */
  wasAsked = false;
  trouble: Trouble = "none";
  /** Passed without tokens, by the policy `open`: to be charged. */
  isCharged = false;
  /** What a reply let through for this check. */
  grant: Grant | undefined;
  /** Spent of a lease in this call. */
  leaseSpend: LeaseSpend | undefined;
  /** Spent of late answers in this call. */
  creditSpend: CreditSpend | undefined;
  fromStock: Tokens = 0;
}

/** The footings whose tokens the store hands out or takes one by one. */
export function isStoreDecided(seat: Seat): boolean {
  return seat.footing === "leased" || seat.footing === "exact";
}
