/**
 * One timer that calls back at an instant of a `Clock`, made to be re-armed after every check: an
 * instant later than the armed one costs a comparison, because an early wake-up only re-arms.
 *
 * "Not later than now" means the end of this turn of the event loop (`setImmediate`), so that all
 * checks that one turn reads from its sockets end up in one batch.
 */
import { type DurationUs, type InstantUs, US_PER_MS } from "../core/units.ts";
import type { Clock } from "../ports/clock.ts";

/** A later instant is approached in steps: Node turns a longer timeout into one millisecond. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1;

/**
 * How long to wait for something that must be on its way within this time: timers are late by a
 * millisecond or so. A millisecond less, a tenth of times below ten.
 */
export function ahead(time: DurationUs): DurationUs {
  return time - Math.min(US_PER_MS, Math.floor(time / 10));
}

export class WakeTimer {
  private readonly clock: Clock;
  private readonly onWake: () => void;
  private wanted: InstantUs = Number.POSITIVE_INFINITY;
  /** The instant that the running timeout or immediate serves; Infinity for none. */
  private armedFor: InstantUs = Number.POSITIVE_INFINITY;
  private timeout: NodeJS.Timeout | undefined;
  private immediate: NodeJS.Immediate | undefined;
  private waking = false;
  private stopped = false;

  constructor(clock: Clock, onWake: () => void) {
    this.clock = clock;
    this.onWake = onWake;
  }

  /** Replaces the instant of the next call; Infinity for none. */
  arm(instant: InstantUs): void {
    this.wanted = instant;
    // The instant after a wake-up is armed when the wake-up is over.
    if (instant < this.armedFor && !this.waking) this.schedule(0);
  }

  stop(): void {
    this.stopped = true;
    this.clear();
  }

  /** @param leastMs - The shortest timeout to use, 0 to allow an immediate. */
  private schedule(leastMs: number): void {
    this.clear();
    if (this.stopped || this.wanted === Number.POSITIVE_INFINITY) return;
    this.armedFor = this.wanted;
    const waitMs = Math.max(
      leastMs,
      Math.ceil((this.wanted - this.clock.monotonicUs()) / US_PER_MS),
    );
    if (waitMs <= 0) this.immediate = setImmediate(() => this.fire());
    else this.timeout = setTimeout(() => this.fire(), Math.min(waitMs, TIMEOUT_MAX_MS));
  }

  private fire(): void {
    this.clear();
    // Node counts milliseconds from the start of the loop's turn, so that a timer can be early.
    if (this.clock.monotonicUs() < this.wanted) {
      this.schedule(0);
      return;
    }
    this.waking = true;
    try {
      this.onWake();
    } finally {
      this.waking = false;
    }
    // A wake-up that wants another one at once gets it a millisecond later: an owner that never has
    // enough must not keep the processor busy.
    this.schedule(1);
  }

  private clear(): void {
    clearTimeout(this.timeout);
    clearImmediate(this.immediate);
    this.timeout = undefined;
    this.immediate = undefined;
    this.armedFor = Number.POSITIVE_INFINITY;
  }
}
