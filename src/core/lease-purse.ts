/**
 * The leases of one key of one pod: tokens by the store's slot, what was spent of each slot and
 * what goes back, until the store is told.
 */
import type { InstantUs, Tokens } from "./units.ts";

/** Leases held at once: one per slot, and slots end. */
const LEASES_MAX = 8;

/** No lease is of it: what is told of it changes nothing. */
const NO_SLOT = 0;

interface Lease {
  slot: number;
  readonly deadline: InstantUs;
  tokens: Tokens;
}

/** Tokens taken out of leases for one check, so that they can be put back. */
export interface LeaseSpend {
  readonly parts: readonly { readonly slot: number; readonly tokens: Tokens }[];
}

export class LeasePurse {
  #leases: Lease[] = [];
  readonly #spent = new Map<number, Tokens>();
  readonly #returned = new Map<number, Tokens>();
  /** Of the store, in whose slots the leases are; 0 for none yet. */
  #epoch = 0;

  /** Nothing is held and nothing is to be told. */
  get isEmpty(): boolean {
    return this.#leases.length === 0 && this.#spent.size === 0 && this.#returned.size === 0;
  }

  get spent(): Tokens {
    return sum(this.#spent);
  }

  get returned(): Tokens {
    return sum(this.#returned);
  }

  /** Tokens that can be spent at `now`. */
  have(now: InstantUs): Tokens {
    this.expire(now);
    return this.#leases.reduce((sum, { tokens }) => sum + tokens, 0);
  }

  /** Spends a cost that `have` covers, from the lease that ends first. */
  spend(cost: Tokens): LeaseSpend {
    const parts: { slot: number; tokens: Tokens }[] = [];
    let left = cost;
    for (const lease of this.#leases) {
      const tokens = Math.min(left, lease.tokens);
      if (tokens === 0) continue;
      lease.tokens -= tokens;
      left -= tokens;
      add(this.#spent, lease.slot, tokens);
      parts.push({ slot: lease.slot, tokens });
      if (left === 0) break;
    }
    return { parts };
  }

  /**
   * Puts tokens back that were spent for a check which another limit denied. What the store was
   * told to be spent meanwhile stays spent: it has refilled in place of these tokens.
   */
  unspend(spend: LeaseSpend): void {
    for (const { slot, tokens } of spend.parts) {
      const untold = Math.min(tokens, this.#spent.get(slot) ?? 0);
      if (untold === 0) continue;
      add(this.#spent, slot, -untold);
      const lease = this.#leases.find((held) => held.slot === slot);
      if (lease === undefined) add(this.#returned, slot, untold);
      else lease.tokens += untold;
    }
  }

  /** Gives everything back with the next call. */
  returnAll(): void {
    for (const { slot, tokens } of this.#leases) add(this.#returned, slot, tokens);
    this.#leases = [];
  }

  /** Takes what the store is to be told: slot number, spent, returned. */
  takeReports(): [number, Tokens, Tokens][] {
    const slots = new Set([...this.#spent.keys(), ...this.#returned.keys()]);
    const reports = [...slots].map((slot): [number, Tokens, Tokens] => [
      slot,
      this.#spent.get(slot) ?? 0,
      this.#returned.get(slot) ?? 0,
    ]);
    this.#spent.clear();
    this.#returned.clear();
    return reports;
  }

  /**
   * The store is of this epoch. After a loss it knows nothing of earlier leases: they are spent as
   * they would have been, but what is told of their slots would be taken for that of others.
   */
  follow(epoch: number): void {
    if (epoch === this.#epoch) return;
    if (this.#epoch !== 0) {
      this.#spent.clear();
      this.#returned.clear();
      for (const lease of this.#leases) lease.slot = NO_SLOT;
    }
    this.#epoch = epoch;
  }

  /** Takes a grant in; one that comes after its deadline goes back at once. */
  add(slot: number, tokens: Tokens, deadline: InstantUs, now: InstantUs): void {
    const held = this.#leases.find((lease) => lease.slot === slot);
    if (deadline <= now || this.#leases.length >= LEASES_MAX) add(this.#returned, slot, tokens);
    else if (held !== undefined && held.deadline <= deadline) held.tokens += tokens;
    else {
      this.#leases.push({ slot, deadline, tokens });
      this.#leases.sort((a, b) => a.deadline - b.deadline);
    }
  }

  /** What has passed its deadline goes back. */
  expire(now: InstantUs): void {
    let first = this.#leases[0];
    while (first !== undefined && (first.deadline <= now || first.tokens === 0)) {
      if (first.tokens > 0) add(this.#returned, first.slot, first.tokens);
      this.#leases.shift();
      first = this.#leases[0];
    }
  }
}

function add(to: Map<number, Tokens>, slot: number, tokens: Tokens): void {
  const sum = (to.get(slot) ?? 0) + tokens;
  if (sum === 0) to.delete(slot);
  else to.set(slot, sum);
}

function sum(of: ReadonlyMap<number, Tokens>): Tokens {
  let total = 0;
  for (const tokens of of.values()) total += tokens;
  return total;
}
