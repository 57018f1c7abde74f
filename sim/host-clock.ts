/** A pod's monotonic clock: starts anywhere, runs a little fast or slow, and may stand still. */
import type { DurationUs, InstantUs } from "../src/core/units.ts";

export class HostClock {
  #trueUs: InstantUs;
  #localUs: InstantUs;
  #rate = 1;
  #stopped = false;

  /** @param startUs - What the clock shows at the true instant `trueUs`. */
  constructor(trueUs: InstantUs, startUs: InstantUs) {
    this.#trueUs = trueUs;
    this.#localUs = startUs;
  }

  /** Whole microseconds on this clock at a true instant not before the last one asked about. */
  at(trueUs: InstantUs): InstantUs {
    return Math.floor(this.#exact(trueUs));
  }

  /** True time until the clock has advanced by `delayUs`, if nothing changes. */
  trueDelay(delayUs: DurationUs): DurationUs {
    return Math.ceil(delayUs / this.#rate);
  }

  setRate(trueUs: InstantUs, rate: number): void {
    this.#settle(trueUs);
    this.#rate = rate;
  }

  stop(trueUs: InstantUs): void {
    this.#settle(trueUs);
    this.#stopped = true;
  }

  resume(trueUs: InstantUs): void {
    this.#settle(trueUs);
    this.#stopped = false;
  }

  #settle(trueUs: InstantUs): void {
    this.#localUs = this.#exact(trueUs);
    this.#trueUs = trueUs;
  }

  #exact(trueUs: InstantUs): InstantUs {
    return this.#stopped ? this.#localUs : this.#localUs + (trueUs - this.#trueUs) * this.#rate;
  }
}
