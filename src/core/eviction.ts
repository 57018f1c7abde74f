/** Makes room for a new key in a full table: an old one goes, and its report goes out before it. */
import type { BucketTable } from "./bucket-table.ts";
import { CHECKS_MAX } from "./decision.ts";
import { IDLE_US } from "./housekeeping.ts";
import type { StoreCalls } from "./store-calls.ts";
import type { StoreLink } from "./store-link.ts";
import type { InstantUs } from "./units.ts";

export interface EvictionParts {
  readonly sole: boolean;
  readonly table: BucketTable;
  readonly link: StoreLink;
  readonly calls: StoreCalls;
}

export class Eviction {
  readonly #parts: EvictionParts;
  /** When a key that was in use had to make room for another. */
  #crowdedAt: InstantUs = Number.NEGATIVE_INFINITY;
  /** Rows of the check that is being decided; none of them makes room for another of it. */
  readonly #kept = new Int32Array(CHECKS_MAX);
  #keptCount = 0;
  readonly #isKept = (slot: number): boolean => {
    for (let i = 0; i < this.#keptCount; i += 1) if (this.#kept[i] === slot) return true;
    return false;
  };

  constructor(parts: EvictionParts) {
    this.#parts = parts;
  }

  /** A new check begins. */
  keepNone(): void {
    this.#keptCount = 0;
  }

  keep(slot: number): void {
    this.#kept[this.#keptCount] = slot;
    this.#keptCount += 1;
  }

  /** Keys in use are being evicted: a new one may be one of those, and starts with nothing. */
  isCrowded(now: InstantUs): boolean {
    return now - this.#crowdedAt < IDLE_US;
  }

  /** @returns False when every row is pinned, or the check's own. */
  makeRoom(now: InstantUs): boolean {
    const { table, link, sole, calls } = this.#parts;
    const victim = table.victim(this.#isKept);
    if (victim === undefined) return false;
    if (now - table.usedAt(victim) < IDLE_US) this.#crowdedAt = now;
    if (!sole) {
      link.orphan(victim, now);
      calls.forget(victim);
    }
    table.remove(victim);
    table.evicted += 1;
    return true;
  }
}
