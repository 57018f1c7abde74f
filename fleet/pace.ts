/**
 * When requests are due: evenly spaced, whatever the answers (an open loop). A generator that
 * woke up late sends what has become due meanwhile, so the number offered does not depend on the
 * machine.
 */
import { type InstantUs, US_PER_SECOND } from "../src/core/units.ts";

export class Pace {
  #startUs: InstantUs;
  #perSecond: number;
  #phase: number;
  #taken = 0;

  /** @param phase - Part of a gap before the first request, 0 to 1: pods must not send in step. */
  constructor(startUs: InstantUs, perSecond: number, phase: number) {
    this.#startUs = startUs;
    this.#perSecond = perSecond;
    this.#phase = phase;
  }

  /** Another rate from now on. */
  change(nowUs: InstantUs, perSecond: number): void {
    this.#startUs = nowUs;
    this.#perSecond = perSecond;
    this.#taken = 0;
  }

  /** Instant of the next request if it is due by now, else undefined. Each is given once. */
  next(nowUs: InstantUs): InstantUs | undefined {
    if (this.#perSecond === 0) return undefined;
    const gaps = this.#taken + this.#phase;
    const dueUs = this.#startUs + (gaps / this.#perSecond) * US_PER_SECOND;
    if (dueUs > nowUs) return undefined;
    this.#taken += 1;
    return dueUs;
  }
}
