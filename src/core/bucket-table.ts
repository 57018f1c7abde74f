/**
 * All buckets of a pod: a row of doubles per key, and a map from key to row.
 *
 * Rows lie in one typed array, so that a million keys are no million objects for the garbage
 * collector, and the fields of one key share cache lines. The table never exceeds `keysMax`; beyond
 * it, the row that was longest not used is evicted by the clock algorithm (second chance), so that
 * a flood of new keys cannot push out one that is in use.
 */
import { invariant } from "./invariant.ts";
import type { Limit } from "./limit.ts";
import type { Tally } from "./tally.ts";
import type { InstantUs } from "./units.ts";

/** A limit with its live keys. */
export interface Book {
  limit: Limit;
  readonly slots: Map<string, number>;
  readonly tally: Tally;
}

/** Row fields of an exact bucket; they come first in every row. */
export const USED_AT = 0;
export const DEFICIT = 1;
export const DEFICIT_TICKS = 2;
export const EXACT_ROW = 3;

/** Flag bits of a row. Used again since the hand of the clock last passed. */
export const RECENT = 1;
/** On the list of its cadence: has something to say, sooner or later. */
export const DIRTY = 2;
/** On the list of its lane: to be cut into the next batch. */
export const DUE = 4;
/** Part of an unanswered batch; must not be evicted. */
export const IN_FLIGHT = 8;
/** Checks wait for its reply; must not be evicted. */
export const HELD = 16;
/** Decided by the fallback bucket. */
export const FALLBACK = 32;
/** Something was denied since the last batch. */
export const DENIED = 64;
/** The store has told about this key. */
export const ANSWERED = 128;

/** On the list of the keys that are to call the store, with checks that wait; not to be evicted. */
export const CALLING = 256;

const PINNED = IN_FLIGHT | HELD | CALLING;
const ROWS_START = 256;

export class BucketTable {
  readonly #rowFields: number;
  readonly #keysMax: number;
  readonly #free: number[] = [];
  readonly #books: (Book | undefined)[] = [];
  readonly #limits: Limit[] = [];
  readonly #keys: string[] = [];
  #allocated: number;
  #rows = 0;
  #hand = 0;
  cells: Float64Array;
  flags: Uint16Array;
  evicted = 0;

  /** @param rowFields - Doubles per row, at least `EXACT_ROW`. */
  constructor(rowFields: number, keysMax: number) {
    invariant(keysMax >= 1, "a table holds at least one key");
    this.#rowFields = rowFields;
    this.#keysMax = keysMax;
    this.#allocated = Math.min(ROWS_START, keysMax);
    this.cells = new Float64Array(this.#allocated * rowFields);
    this.flags = new Uint16Array(this.#allocated);
  }

  get size(): number {
    return this.#rows - this.#free.length;
  }

  /** Rows ever used; slots are below this, some of them free. */
  get rows(): number {
    return this.#rows;
  }

  get isFull(): boolean {
    return this.#free.length === 0 && this.#rows >= this.#keysMax;
  }

  /** Where the row of a slot begins in `cells`. */
  at(slot: number): number {
    return slot * this.#rowFields;
  }

  isLive(slot: number): boolean {
    return this.#books[slot] !== undefined;
  }

  bookOf(slot: number): Book {
    return this.#books[slot] as Book;
  }

  /** The limit in force for the slot's key, its override included. */
  limitOf(slot: number): Limit {
    return this.#limits[slot] as Limit;
  }

  setLimit(slot: number, limit: Limit): void {
    this.#limits[slot] = limit;
  }

  keyOf(slot: number): string {
    return this.#keys[slot] as string;
  }

  /**
   * Spares the row when the hand comes by next. A key is not recent by its first use: in a flood of
   * keys that are used once, every row would be, and the one in use would go with them.
   */
  markUsedAgain(slot: number): void {
    this.flags[slot] = (this.flags[slot] as number) | RECENT;
  }

  /** Takes a free row, zeroed but for the instant. The table must not be full. */
  add(book: Book, limit: Limit, key: string, now: InstantUs): number {
    const slot = this.#free.pop() ?? this.#grow();
    const start = this.at(slot);
    this.cells.fill(0, start, start + this.#rowFields);
    this.cells[start + USED_AT] = now;
    // A dirty mark belongs to the place on the cadence's list, which the slot keeps.
    this.flags[slot] = (this.flags[slot] as number) & DIRTY;
    this.#books[slot] = book;
    this.#limits[slot] = limit;
    this.#keys[slot] = key;
    book.slots.set(key, slot);
    return slot;
  }

  remove(slot: number): void {
    const book = this.#books[slot];
    invariant(book !== undefined, "only a live row can be removed");
    book.slots.delete(this.keyOf(slot));
    this.#books[slot] = undefined;
    this.#keys[slot] = "";
    this.flags[slot] = (this.flags[slot] as number) & DIRTY;
    this.#free.push(slot);
  }

  /**
   * The row to evict: the first that was not used since the hand last passed. Undefined when every
   * row is pinned by an unanswered batch or a held check.
   */
  victim(): number | undefined {
    for (let step = 0; step < 2 * this.#rows; step += 1) {
      const slot = this.#hand;
      this.#hand = slot + 1 >= this.#rows ? 0 : slot + 1;
      const flags = this.flags[slot] as number;
      if (this.#books[slot] === undefined || (flags & PINNED) !== 0) continue;
      if ((flags & RECENT) === 0) return slot;
      this.flags[slot] = flags & ~RECENT;
    }
    return undefined;
  }

  #grow(): number {
    invariant(this.#rows < this.#keysMax, "the table is full");
    if (this.#rows === this.#allocated) {
      this.#allocated = Math.min(this.#keysMax, this.#allocated * 2);
      const cells = new Float64Array(this.#allocated * this.#rowFields);
      cells.set(this.cells);
      this.cells = cells;
      const flags = new Uint16Array(this.#allocated);
      flags.set(this.flags);
      this.flags = flags;
    }
    this.#rows += 1;
    return this.#rows - 1;
  }
}
