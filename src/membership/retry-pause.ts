/**
 * How long to wait after a failure: twice as long each time, up to a maximum, and never in step.
 */
import type { Random } from "../ports/random.ts";

const FIRST_MS = 500;
const MOST_MS = 30_000;

export class RetryPause {
  private readonly random: Random;
  private failures = 0;

  constructor(random: Random) {
    this.random = random;
  }

  /** All is well: the next failure is the first again. */
  reset(): void {
    this.failures = 0;
  }

  /** Milliseconds until the next attempt. @param leastMs - What the other side asked for. */
  next(leastMs = 0): number {
    const most = Math.min(MOST_MS, FIRST_MS * 2 ** this.failures);
    this.failures = Math.min(this.failures + 1, 16);
    return Math.max(Math.min(leastMs, MOST_MS), most * (0.5 + 0.5 * this.random.draw()));
  }
}
