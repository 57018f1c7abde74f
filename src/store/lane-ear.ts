/**
 * Remembers the last reply heard in one lane, so that the next call can say how much time has
 * passed since by this pod's monotonic clock. The store needs it to tell a step of its own clock
 * from time.
 */
import type { DurationUs, InstantUs } from "../core/units.ts";

export interface Heard {
  /** Epoch of the lane; 0 for never. */
  readonly epoch: number;
  /** The store's corrected time in the reply; 0 for none. */
  readonly heardAtUs: InstantUs;
  /** Whole microseconds since the call that it answered was sent. */
  readonly heardAgoUs: DurationUs;
}

export class LaneEar {
  private epoch = 0;
  private heardAtUs: InstantUs = 0;
  private sentAt: InstantUs = 0;

  /**
   * @param sentAt - Monotonic time when the answered call was sent: before its reply's time by the
   *   way out, so that a slow reply is never taken for a step.
   */
  heard(epoch: number, nowUs: InstantUs, sentAt: InstantUs): void {
    if (epoch === this.epoch && nowUs < this.heardAtUs) return; // a late reply, known better
    this.epoch = epoch;
    this.heardAtUs = nowUs;
    this.sentAt = sentAt;
  }

  at(monotonicUs: InstantUs): Heard {
    const heardAgoUs = this.epoch === 0 ? 0 : Math.floor(monotonicUs - this.sentAt);
    return { epoch: this.epoch, heardAtUs: this.heardAtUs, heardAgoUs };
  }
}
