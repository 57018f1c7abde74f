/**
 * The keys of one reconcile interval that have something to say. They are looked at together once
 * an interval, with jitter, so that the cost of a tick grows with the busy keys and not with all.
 * A great many are looked at in portions, so that no tick keeps checks waiting for long.
 */
import type { DurationUs, InstantUs } from "./units.ts";

/** Keys looked at in one tick; the rest follows in the next, which is wanted at once. */
export const PORTION_MAX = 2_000;

export class Cadence {
  readonly intervalUs: DurationUs;
  /** Keys of the turn that is under way, from `#next` on. */
  #turning: number[] = [];
  #next = 0;
  #dirty: number[] = [];
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

  add(slot: number, now: InstantUs): void {
    if (this.#dirty.length === 0 && this.#nextAt <= now) {
      // Asleep for a while: the rhythm goes on as if it had never stopped.
      const missed = Math.floor((now - this.#nextAt) / this.intervalUs) + 1;
      this.#nextAt += missed * this.intervalUs;
    }
    this.#dirty.push(slot);
  }

  /**
   * Hands out the next portion of keys; with the first portion a new interval begins, 0.9 to 1.1 of
   * the nominal one.
   *
   * @param draw - Uniform in [0, 1).
   */
  turn(now: InstantUs, draw: number): readonly number[] {
    if (this.#next >= this.#turning.length) {
      this.#turning = this.#dirty;
      this.#next = 0;
      this.#dirty = [];
      this.#nextAt = now + this.intervalUs * (0.9 + 0.2 * draw);
    }
    const from = this.#next;
    this.#next = Math.min(this.#turning.length, from + PORTION_MAX);
    if (from === 0 && this.#next === this.#turning.length) return this.#turning;
    return this.#turning.slice(from, this.#next);
  }
}
