/**
 * The keys of one reconcile interval that have something to say. They are looked at together once
 * an interval, with jitter, so that the cost of a tick grows with the busy keys and not with all.
 */
import type { DurationUs, InstantUs } from "./units.ts";

export class Cadence {
  readonly intervalUs: DurationUs;
  #dirty: number[] = [];
  #nextAt: InstantUs;

  constructor(intervalUs: DurationUs, now: InstantUs) {
    this.intervalUs = intervalUs;
    this.#nextAt = now + intervalUs;
  }

  /** When the keys are looked at next; Infinity while none has anything to say. */
  get nextAt(): InstantUs {
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

  /** Hands out the keys and begins a new interval of 0.9 to 1.1. @param draw - In [0, 1). */
  turn(now: InstantUs, draw: number): number[] {
    const dirty = this.#dirty;
    this.#dirty = [];
    this.#nextAt = now + this.intervalUs * (0.9 + 0.2 * draw);
    return dirty;
  }
}
