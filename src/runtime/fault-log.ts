/**
 * Faults of single requests and connections, written at most once a second with their number.
 *
 * Such a fault does not end the process: a bug outside the engine touches no state, and one
 * strange request must not be able to stop every sidecar of a fleet. What the engine throws goes
 * another way.
 */
import { type InstantUs, US_PER_SECOND } from "../core/units.ts";
import type { Clock } from "../ports/clock.ts";

export class FaultLog {
  private readonly clock: Clock;
  private readonly write: (fields: object, message: string) => void;
  private writtenAt: InstantUs = Number.NEGATIVE_INFINITY;
  private faults = 0;

  constructor(clock: Clock, write: (fields: object, message: string) => void) {
    this.clock = clock;
    this.write = write;
  }

  note(error: unknown): void {
    this.faults += 1;
    const now = this.clock.monotonicUs();
    if (now - this.writtenAt < US_PER_SECOND) return;
    this.write({ err: error, faults: this.faults }, "a request met a fault");
    this.writtenAt = now;
    this.faults = 0;
  }
}
