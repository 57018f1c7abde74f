/**
 * A token bucket in one pod whose rate and burst are parts of a limit's. The parts may change while
 * it runs, which is what schemes do that divide a limit by the number of pods.
 *
 * Doubles with a small slack: a baseline may not lose by rounding what its rule gives.
 */
import type { Limit } from "../../src/core/limit.ts";
import type { DurationUs, InstantUs, Tokens } from "../../src/core/units.ts";

const SLACK = 1e-9;

export class LocalBucket {
  readonly #limit: Limit;
  #ratePart: number;
  #burst: Tokens;
  #level: Tokens;
  #atUs: InstantUs;

  /** Starts full. */
  constructor(limit: Limit, nowUs: InstantUs, ratePart = 1, burstPart = 1) {
    this.#limit = limit;
    this.#ratePart = ratePart;
    this.#burst = limit.burst * burstPart;
    this.#level = this.#burst;
    this.#atUs = nowUs;
  }

  /** Other parts hold from now on; tokens beyond the new burst are gone. */
  divide(nowUs: InstantUs, ratePart: number, burstPart: number): void {
    this.#refill(nowUs);
    this.#ratePart = ratePart;
    this.#burst = this.#limit.burst * burstPart;
    this.#level = Math.min(this.#level, this.#burst);
  }

  holds(nowUs: InstantUs, cost: Tokens): boolean {
    this.#refill(nowUs);
    return this.#level + SLACK >= cost;
  }

  take(cost: Tokens): void {
    this.#level -= cost;
  }

  /** Until a cost fits; Infinity when it never does. */
  waitUs(cost: Tokens): DurationUs {
    if (cost > this.#burst + SLACK) return Number.POSITIVE_INFINITY;
    const missing = Math.max(0, cost - this.#level);
    return Math.ceil((missing * 1e6) / (this.#limit.rate * this.#ratePart));
  }

  #refill(nowUs: InstantUs): void {
    const passedS = Math.max(0, nowUs - this.#atUs) / 1e6;
    this.#atUs = Math.max(this.#atUs, nowUs);
    this.#level = Math.min(this.#burst, this.#level + passedS * this.#limit.rate * this.#ratePart);
  }
}
