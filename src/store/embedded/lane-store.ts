/** All that is kept of one lane: its record, keys and sequence records, and how they expire. */
import type { InstantUs } from "../../core/units.ts";
import type { LaneRecord } from "./lane-record.ts";

/** A stored value and the lane's time after which it says nothing any more. */
export interface Kept {
  numbers: Float64Array;
  expiresAt: InstantUs;
}

/** Keys among which the one is chosen that makes room for another. */
const CANDIDATES = 8;

export class LaneStore {
  record: LaneRecord | undefined;
  /** The record was overwritten with what cannot be one. */
  damaged = false;
  /** By limit and key. */
  readonly keys: Map<string, Kept>;
  /** By pod record: last sequence number, the one before, when. */
  readonly batches: Map<string, Kept>;
  /** Where the sweep goes on. */
  private walk: Iterator<[string, Kept]>;
  /** Where the search for a key that makes room goes on. */
  private hand: Iterator<[string, Kept]>;

  constructor(keys: Map<string, Kept> = new Map(), batches: Map<string, Kept> = new Map()) {
    this.keys = keys;
    this.batches = batches;
    this.walk = this.everything();
    this.hand = keys.entries();
  }

  copy(): LaneStore {
    const copy = new LaneStore(copyKept(this.keys), copyKept(this.batches));
    copy.record = this.record === undefined ? undefined : { ...this.record };
    copy.damaged = this.damaged;
    return copy;
  }

  /** Drops what has expired, a few values at each call, so that a call never waits for it. */
  sweep(now: InstantUs, steps: number): void {
    for (let i = 0; i <= steps; i += 1) {
      const next = this.walk.next();
      if (next.done) {
        this.walk = this.everything();
        return;
      }
      const [name, kept] = next.value;
      if (now <= kept.expiresAt) continue;
      if (this.keys.get(name) === kept) this.keys.delete(name);
      else if (this.batches.get(name) === kept) this.batches.delete(name);
    }
  }

  /**
   * Forgets a key when there are more than `most`: of a few, the one that is full again soonest.
   *
   * @param spared - The key that has just been written.
   */
  makeRoom(most: number, spared: string): void {
    if (this.keys.size <= most) return;
    let soonest: string | undefined;
    let expiresAt = Number.POSITIVE_INFINITY;
    for (let i = 0; i < CANDIDATES; i += 1) {
      let next = this.hand.next();
      if (next.done) {
        this.hand = this.keys.entries();
        next = this.hand.next();
      }
      if (next.done) return;
      const [name, kept] = next.value;
      if (name === spared || kept.expiresAt >= expiresAt) continue;
      soonest = name;
      expiresAt = kept.expiresAt;
    }
    if (soonest !== undefined) this.keys.delete(soonest);
  }

  private *everything(): Generator<[string, Kept], undefined> {
    yield* this.keys;
    yield* this.batches;
  }
}

function copyKept(kept: ReadonlyMap<string, Kept>): Map<string, Kept> {
  const copy = new Map<string, Kept>();
  for (const [name, { numbers, expiresAt }] of kept) {
    copy.set(name, { numbers: numbers.slice(), expiresAt });
  }
  return copy;
}
