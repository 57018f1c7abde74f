/**
 * All buckets of a pod: a row of doubles per key, and a map from key to row.
 *
 * Rows lie in one typed array, so that a million keys are no million objects for the garbage
 * collector, and the fields of one key share cache lines. Hybrid rows are long, and most of them
 * have nothing going on: those rest (`rested-rows.ts`), and only rows that are awake have cells.
 *
 * The table never exceeds `keysMax`; beyond it, the clock algorithm (second chance) finds a row to
 * evict, so that a flood of new keys cannot push out one that is in use.
 */
import { copyInto, grown } from "./columns.ts";
import { invariant } from "./invariant.ts";
import type { Limit } from "./limit.ts";
import type { RestedRows } from "./rested-rows.ts";
import type { Tally } from "./tally.ts";
import { NO_TERM, Terms } from "./terms.ts";
import { NO_TIDING } from "./tidings.ts";
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
/** On the list of its cadence, and to be looked at by the next turn whatever was foreseen. */
export const LOOK = 512;

const PINNED = IN_FLIGHT | HELD | CALLING;
/** A row that is on some list, or not in the store's hands, is awake. */
const BUSY = DIRTY | DUE | IN_FLIGHT | HELD | FALLBACK | DENIED | CALLING;
const ROWS_START = 256;
/** So many rows of keys in use stay awake, which is 34 MB; beyond it memory is worth more. */
const AWAKE_MAX = 131_072;

export class BucketTable {
  readonly #rowFields: number;
  readonly #keysMax: number;
  readonly #rested: RestedRows | undefined;
  readonly #free: number[] = [];
  readonly #terms = new Terms();
  readonly #keys: string[] = [];
  #termIds: Uint32Array;
  /** Where the cells of a slot are, in rows. At rest, `~` of the number of its tiding. */
  #places: Int32Array;
  readonly #freePlaces: number[] = [];
  #placesUsed = 0;
  #allocated: number;
  #rows = 0;
  #hand = 0;
  cells: Float64Array;
  flags: Uint16Array;
  /** The lane of each slot's key. */
  lanes: Uint8Array;
  evicted = 0;

  /**
   * @param rowFields - Doubles per row, at least `EXACT_ROW`.
   * @param rested - Where rows rest; without it none does.
   */
  constructor(rowFields: number, keysMax: number, rested?: RestedRows) {
    invariant(keysMax >= 1, "a table holds at least one key");
    this.#rowFields = rowFields;
    this.#keysMax = keysMax;
    this.#rested = rested;
    this.#allocated = Math.min(ROWS_START, keysMax);
    this.cells = new Float64Array(this.#allocated * rowFields);
    this.flags = new Uint16Array(this.#allocated);
    this.lanes = new Uint8Array(rested === undefined ? 0 : this.#allocated);
    this.#termIds = new Uint32Array(this.#allocated);
    this.#places = new Int32Array(rested === undefined ? 0 : this.#allocated);
    rested?.grow(this.#allocated);
  }

  /** Where rows rest. Only for a table in which they do. */
  get rested(): RestedRows {
    return this.#rested as RestedRows;
  }

  get size(): number {
    return this.#rows - this.#free.length;
  }

  /** Slots are below this, some of them free. */
  get rows(): number {
    return this.#rows;
  }

  /** Rows that have cells. */
  get awake(): number {
    return this.#rested === undefined ? this.size : this.#placesUsed - this.#freePlaces.length;
  }

  get isFull(): boolean {
    return this.#free.length === 0 && this.#rows >= this.#keysMax;
  }

  /** Where the row of a slot begins in `cells`. The row must be awake. */
  at(slot: number): number {
    if (this.#rested === undefined) return slot * this.#rowFields;
    const place = this.#places[slot] as number;
    invariant(place >= 0, "a row that rests has no cells");
    return place * this.#rowFields;
  }

  isLive(slot: number): boolean {
    return this.#termIds[slot] !== NO_TERM;
  }

  isAwake(slot: number): boolean {
    return this.#rested === undefined || (this.#places[slot] as number) >= 0;
  }

  bookOf(slot: number): Book {
    return this.#terms.bookOf(this.#termIds[slot] as number);
  }

  /** The limit in force for the slot's key, its override included. */
  limitOf(slot: number): Limit {
    return this.#terms.limitOf(this.#termIds[slot] as number);
  }

  setLimit(slot: number, limit: Limit): void {
    const before = this.#termIds[slot] as number;
    this.#termIds[slot] = this.#terms.take(this.#terms.bookOf(before), limit);
    this.#terms.drop(before);
    this.markChanged(slot);
  }

  /** What was foreseen of a row on the list of its cadence holds no more. */
  markChanged(slot: number): void {
    const flags = this.flags[slot] as number;
    if ((flags & DIRTY) !== 0) this.flags[slot] = flags | LOOK;
  }

  keyOf(slot: number): string {
    return this.#keys[slot] as string;
  }

  /** When the key was last asked for, whether its row rests or not. */
  usedAt(slot: number): InstantUs {
    if (this.isAwake(slot)) return this.cells[this.at(slot) + USED_AT] as number;
    return this.rested.usedAt(slot, ~(this.#places[slot] as number));
  }

  /** Gives the row cells, which may put another array in place of `cells`. */
  wake(slot: number): void {
    if (this.isAwake(slot)) return;
    const place = this.#takePlace();
    const limit = this.limitOf(slot);
    const tiding = ~(this.#places[slot] as number);
    this.rested.unpack(slot, tiding, this.cells, place * this.#rowFields, limit);
    this.#places[slot] = place;
  }

  /**
   * The row is used again: it wakes, and the hand that comes by next spares it. A key is not recent
   * by its first use: in a flood of keys that are used once, every row would be, and the one in use
   * would go with them.
   *
   * @returns Where its cells begin.
   */
  awaken(slot: number): number {
    this.flags[slot] = (this.flags[slot] as number) | RECENT;
    if (this.#rested === undefined) return slot * this.#rowFields;
    if ((this.#places[slot] as number) < 0) this.wake(slot);
    return (this.#places[slot] as number) * this.#rowFields;
  }

  /** Lets the row rest if nothing goes on in it. */
  rest(slot: number, now: InstantUs): void {
    if (this.#rested === undefined || !this.isAwake(slot)) return;
    const flags = this.flags[slot] as number;
    if ((flags & BUSY) !== 0 || (flags & ANSWERED) === 0) return;
    const limit = this.limitOf(slot);
    if (limit.mode !== "hybrid") return;
    const tiding = this.#rested.pack(slot, this.cells, this.at(slot), limit, now);
    if (tiding === NO_TIDING) return;
    this.#freePlaces.push(this.#places[slot] as number);
    this.#places[slot] = ~tiding;
  }

  /**
   * The same after a reply, for a key asked for once: to rest and to wake costs more than a check.
   * One that is in use rests after a while, or at once when a great many rows are awake.
   */
  restUnlessInUse(slot: number, now: InstantUs): void {
    const isInUse = ((this.flags[slot] as number) & RECENT) !== 0;
    if (!isInUse || this.awake > AWAKE_MAX) this.rest(slot, now);
  }

  /** Takes a free row, zeroed but for the instant. The table must not be full. */
  add(book: Book, limit: Limit, key: string, now: InstantUs): number {
    const slot = this.#free.pop() ?? this.#grow();
    if (this.#rested !== undefined) this.#places[slot] = this.#takePlace();
    const start = this.at(slot);
    this.cells.fill(0, start, start + this.#rowFields);
    this.cells[start + USED_AT] = now;
    this.flags[slot] = listedOnly(this.flags[slot] as number);
    this.#termIds[slot] = this.#terms.take(book, limit);
    this.#keys[slot] = key;
    book.slots.set(key, slot);
    return slot;
  }

  remove(slot: number): void {
    invariant(this.isLive(slot), "only a live row can be removed");
    this.bookOf(slot).slots.delete(this.keyOf(slot));
    if (this.#rested !== undefined) {
      const place = this.#places[slot] as number;
      if (place < 0) this.#rested.drop(~place);
      else this.#freePlaces.push(place);
    }
    this.#terms.drop(this.#termIds[slot] as number);
    this.#termIds[slot] = NO_TERM;
    this.#keys[slot] = "";
    this.flags[slot] = listedOnly(this.flags[slot] as number);
    this.#free.push(slot);
  }

  /**
   * The row to evict: the first that was not used since the hand last passed. Undefined when every
   * row is pinned by an unanswered batch or a held check.
   */
  victim(isKept: (slot: number) => boolean): number | undefined {
    for (let step = 0; step < 2 * this.#rows; step += 1) {
      const slot = this.#hand;
      this.#hand = slot + 1 >= this.#rows ? 0 : slot + 1;
      const flags = this.flags[slot] as number;
      if (!this.isLive(slot) || (flags & PINNED) !== 0 || isKept(slot)) continue;
      if ((flags & RECENT) === 0) return slot;
      this.flags[slot] = flags & ~RECENT;
    }
    return undefined;
  }

  #grow(): number {
    invariant(this.#rows < this.#keysMax, "the table is full");
    if (this.#rows === this.#allocated) this.#enlarge();
    this.#rows += 1;
    return this.#rows - 1;
  }

  #enlarge(): void {
    const slots = grown(this.#allocated, this.#keysMax);
    this.#allocated = slots;
    this.flags = copyInto(new Uint16Array(slots), this.flags);
    this.#termIds = copyInto(new Uint32Array(slots), this.#termIds);
    if (this.#rested === undefined) {
      this.cells = copyInto(new Float64Array(slots * this.#rowFields), this.cells);
      return;
    }
    this.lanes = copyInto(new Uint8Array(slots), this.lanes);
    this.#places = copyInto(new Int32Array(slots), this.#places);
    this.#rested.grow(slots);
  }

  /** Cells for one row; which ones were free last are in the processor's cache. */
  #takePlace(): number {
    const free = this.#freePlaces.pop();
    if (free !== undefined) return free;
    const places = this.cells.length / this.#rowFields;
    if (this.#placesUsed === places) {
      const length = grown(places, this.#keysMax) * this.#rowFields;
      this.cells = copyInto(new Float64Array(length), this.cells);
    }
    this.#placesUsed += 1;
    return this.#placesUsed - 1;
  }
}

/** A dirty mark belongs to the place on the cadence's list, which the slot keeps. */
function listedOnly(flags: number): number {
  return (flags & DIRTY) === 0 ? 0 : DIRTY | LOOK;
}
