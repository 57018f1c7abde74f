/**
 * The machine's monotonic clock as the `Clock` port: whole microseconds since the process began.
 */
import type { InstantUs } from "../core/units.ts";
import type { Clock } from "../ports/clock.ts";

export class SystemClock implements Clock {
  private last: InstantUs = 0;

  monotonicUs(): InstantUs {
    // `performance.now` is monotonic by contract. The comparison guards the one promise that all
    // accounting rests on, should a virtual machine be moved or the rounding of a double differ.
    const now = Math.floor(performance.now() * 1_000);
    if (now > this.last) this.last = now;
    return this.last;
  }
}
