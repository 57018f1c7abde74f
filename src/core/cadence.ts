/**
 * The keys of one reconcile interval that have something to say. They are looked at together once
 * an interval, with jitter, so that the cost of a tick grows with the busy keys and not with all.
 * A great many are looked at in portions, so that no tick keeps checks waiting for long.
 *
 * With each key goes the instant before which a look at it is in vain, as far as was known when it
 * was added. A turn reads these one after the other, without a look at the rows.
 */
import type { DurationUs, InstantUs } from "./units.ts";

/** Keys handed out in one tick; the rest follows in the next, which is wanted at once. */
export const PORTION_MAX = 2_000;

const LENGTH_START = 256;

/** Slots with instants, in the order in which they came. */
class Listed {
  slots: Int32Array = new Int32Array(LENGTH_START);
  lookAts: Float64Array = new Float64Array(LENGTH_START);
  length = 0;

  push(slot: number, lookAt: InstantUs): void {
    if (this.length === this.slots.length) this.#enlarge();
    this.slots[this.length] = slot;
    this.lookAts[this.length] = lookAt;
    this.length += 1;
  }

  #enlarge(): void {
    const { slots, lookAts } = this;
    this.slots = new Int32Array(2 * slots.length);
    this.slots.set(slots);
    this.lookAts = new Float64Array(2 * slots.length);
    this.lookAts.set(lookAts);
  }
}

export class Cadence {
  readonly intervalUs: DurationUs;
  /** Keys of the turn that is under way, from `#next` on. */
  #turning = new Listed();
  #next = 0;
  #dirty = new Listed();
  #nextAt: InstantUs;

  constructor(intervalUs: DurationUs, now: InstantUs) {
    this.intervalUs = intervalUs;
    this.#nextAt = now + intervalUs;
  }

  /** When keys are looked at next; Infinity while none has anything to say. */
  get nextAt(): InstantUs {
    if (this.#next < this.#turning.length) return Number.NEGATIVE_INFINITY;
    return this.#dirty.length === 0 ? Number.POSITIVE_INFINITY : this.#nextAt;
  }

  /** @param lookAt - Before this a look is in vain; a turn hands the key out all the same. */
  add(slot: number, lookAt: InstantUs, now: InstantUs): void {
    if (this.#dirty.length === 0 && this.#nextAt <= now) {
      // Asleep for a while: the rhythm goes on as if it had never stopped.
      const missed = Math.floor((now - this.#nextAt) / this.intervalUs) + 1;
      this.#nextAt += missed * this.intervalUs;
    }
    this.#dirty.push(slot, lookAt);
  }

  /**
   * Begins to hand out the next portion of keys; with the first portion a new interval begins, 0.9
   * to 1.1 of the nominal one. `slotAt` and `lookAtOf` tell of the keys of the portion.
   *
   * @param draw - Uniform in [0, 1).
   * @returns Where the portion begins; it ends in front of `turned`.
   */
  turn(now: InstantUs, draw: number): number {
    if (this.#next >= this.#turning.length) {
      const before = this.#turning;
      before.length = 0;
      this.#turning = this.#dirty;
      this.#next = 0;
      this.#dirty = before;
      this.#nextAt = now + this.intervalUs * (0.9 + 0.2 * draw);
    }
    const from = this.#next;
    this.#next = Math.min(this.#turning.length, from + PORTION_MAX);
    return from;
  }

  /** How many keys of this turn were handed out. */
  get turned(): number {
    return this.#next;
  }

  slotAt(index: number): number {
    return this.#turning.slots[index] as number;
  }

  lookAtOf(index: number): InstantUs {
    return this.#turning.lookAts[index] as number;
  }
}
