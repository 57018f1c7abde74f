/**
 * Checks of cost 0: they answer what a check of cost 1 would, and spend nothing. A pod that knows
 * nothing of the key, or nothing recent, asks the store first, as it would for a check that it
 * cannot cover.
 */
import type { BucketTable } from "./bucket-table.ts";
import type { HeldChecks } from "./held-checks.ts";
import type { HybridBuckets } from "./hybrid.ts";
import { isStoreDecided, type Seat } from "./seat.ts";
import type { StoreDecided } from "./store-decided.ts";
import type { StoreLink } from "./store-link.ts";
import type { InstantUs } from "./units.ts";
import type { Verdicts } from "./verdicts.ts";

export interface PeekParts {
  readonly table: BucketTable;
  readonly hybrid: HybridBuckets;
  readonly held: HeldChecks;
  readonly link: StoreLink;
  readonly verdicts: Verdicts;
  readonly storeDecided: StoreDecided;
}

export class Peeks {
  readonly #parts: PeekParts;

  constructor(parts: PeekParts) {
    this.#parts = parts;
  }

  /** A row to ask with, where there is a store to ask; no other key makes room for it. */
  needsRow(seat: Seat): boolean {
    if (this.#parts.table.isFull) return false;
    return seat.footing === "hybrid" || isStoreDecided(seat);
  }

  /** Whether what the pod knows of the key is too old to tell, and the store can be asked. */
  asksFirst(seat: Seat, now: InstantUs): boolean {
    const { hybrid, held, link, storeDecided } = this.#parts;
    if (seat.wasAsked || seat.slot < 0 || link.isLeaving || held.isFull) return false;
    if (isStoreDecided(seat)) return storeDecided.isUnheard(seat, now);
    return seat.footing === "hybrid" && seat.tier === 0 && hybrid.isStale(seat.at, seat.limit, now);
  }

  /** A hybrid row: whether it would cover a check of cost 1, or the store would. */
  passesHybrid({ at, tier, limit }: Seat, now: InstantUs): boolean {
    const { hybrid } = this.#parts;
    if (hybrid.covers(at, 1)) return true;
    if (tier !== 0 || hybrid.isStale(at, limit, now)) return false;
    return hybrid.isWorthAsking(at, limit, 1, now);
  }

  /** A key without a row and without a store to ask. */
  passesUnknown(seat: Seat): boolean {
    if (seat.footing === "closed" || seat.footing === "full") return false;
    return seat.footing !== "fallback" || this.#parts.verdicts.unknownTokens(seat) >= 1;
  }
}
