/**
 * What a batch and its reply tell of every row in it alike: when it was asked, heard and stored,
 * under which epoch, and how long stock may be used; and the cold part, which hardly differs
 * between the keys of a limit. Rows at rest share it, because a batch brings the same to dozens.
 */
import type { DurationUs, InstantUs, Tokens } from "./units.ts";

export interface Tiding {
  readonly repliedAt: InstantUs;
  readonly askedAt: InstantUs;
  readonly heardAt: InstantUs;
  readonly epoch: number;
  readonly registered: number;
  readonly stockUs: DurationUs;
  readonly cold: Tokens;
}

interface Shared extends Tiding {
  rows: number;
}

/** A batch may hold keys of several limits, whose stock lasts for different times. */
const RECENT_MAX = 8;

/** The number that stands for none. */
export const NO_TIDING = -1;

/** There are at most as many as rows. */
export class Tidings {
  readonly #shared: (Shared | undefined)[] = [];
  readonly #free: number[] = [];
  /** The last that were new, to be shared by the rows that follow. */
  readonly #recent: number[] = [];
  #next = 0;

  of(id: number): Tiding {
    return this.#shared[id] as Shared;
  }

  /** One more row was told this. @returns Its number. */
  take(tiding: Tiding): number {
    for (const id of this.#recent) {
      const known = this.#shared[id];
      if (known === undefined || !isSame(known, tiding)) continue;
      known.rows += 1;
      return id;
    }
    const id = this.#free.pop() ?? this.#shared.length;
    this.#shared[id] = { ...tiding, rows: 1 };
    this.#recent[this.#next] = id;
    this.#next = (this.#next + 1) % RECENT_MAX;
    return id;
  }

  /** A row was told something newer, or is gone. */
  drop(id: number): void {
    const shared = this.#shared[id] as Shared;
    shared.rows -= 1;
    if (shared.rows > 0) return;
    this.#shared[id] = undefined;
    this.#free.push(id);
  }
}

function isSame(a: Tiding, b: Tiding): boolean {
  return (
    a.repliedAt === b.repliedAt &&
    a.askedAt === b.askedAt &&
    a.heardAt === b.heardAt &&
    a.epoch === b.epoch &&
    a.registered === b.registered &&
    a.stockUs === b.stockUs &&
    a.cold === b.cold
  );
}
