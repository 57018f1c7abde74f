/**
 * What a batch and its reply tell of every row in it alike: when it was asked, heard and stored,
 * under which epoch, and how long stock may be used; and the cold part, which hardly differs
 * between the keys of a limit. Rows at rest share it, because a batch brings the same to dozens.
 */
import { copyInto, grown } from "./columns.ts";

/** Fields of a tiding, in order. */
export const TIDING = {
  repliedAt: 0,
  askedAt: 1,
  heardAt: 2,
  epoch: 3,
  registered: 4,
  stockUs: 5,
  cold: 6,
} as const;
const TIDING_FIELDS = 7;

/** A batch may hold keys of several limits, whose stock lasts for different times. */
const RECENT_MAX = 8;

const SHARED_START = 64;

/** The number that stands for none. */
export const NO_TIDING = -1;

/** There are at most as many as rows. */
export class Tidings {
  /** What to `take` next: written by the caller, so that a row costs no object. */
  readonly next: Float64Array = new Float64Array(TIDING_FIELDS);
  #told = new Float64Array(SHARED_START * TIDING_FIELDS);
  #rows = new Int32Array(SHARED_START);
  #used = 0;
  readonly #free: number[] = [];
  /** The last that were new, to be shared by the rows that follow. */
  readonly #recent = new Int32Array(RECENT_MAX).fill(NO_TIDING);
  #place = 0;

  /** @param field - One of `TIDING`. */
  of(id: number, field: number): number {
    return this.#told[id * TIDING_FIELDS + field] as number;
  }

  /** One more row was told `next`. @returns Its number. */
  take(): number {
    for (const id of this.#recent) {
      if (id === NO_TIDING || this.#rows[id] === 0 || !this.#isNext(id)) continue;
      this.#rows[id] = (this.#rows[id] as number) + 1;
      return id;
    }
    const id = this.#free.pop() ?? this.#add();
    this.#told.set(this.next, id * TIDING_FIELDS);
    this.#rows[id] = 1;
    this.#recent[this.#place] = id;
    this.#place = (this.#place + 1) % RECENT_MAX;
    return id;
  }

  /** A row was told something newer, or is gone. */
  drop(id: number): void {
    const rows = (this.#rows[id] as number) - 1;
    this.#rows[id] = rows;
    if (rows === 0) this.#free.push(id);
  }

  #isNext(id: number): boolean {
    for (let field = 0; field < TIDING_FIELDS; field += 1) {
      if (this.#told[id * TIDING_FIELDS + field] !== this.next[field]) return false;
    }
    return true;
  }

  #add(): number {
    if (this.#used === this.#rows.length) {
      const length = grown(this.#used, Number.POSITIVE_INFINITY);
      this.#told = copyInto(new Float64Array(length * TIDING_FIELDS), this.#told);
      this.#rows = copyInto(new Int32Array(length), this.#rows);
    }
    this.#used += 1;
    return this.#used - 1;
  }
}
