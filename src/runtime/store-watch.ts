/**
 * Turns a stream of single outcomes of store calls into two rare log lines: the store went away,
 * the store is back.
 *
 * Away means that nothing but failures came for a second: one late reply is business as usual, and
 * the pods answered by themselves all along. Lines come on a change only and at least a second
 * apart, so that a flapping network cannot fill the log.
 */
import { type DurationUs, type InstantUs, US_PER_SECOND } from "../core/units.ts";
import type { Clock } from "../ports/clock.ts";

/** Failures only for this long make the store count as away. */
export const AWAY_AFTER_US: DurationUs = US_PER_SECOND;
/** Shortest distance of two lines. */
export const QUIET_US: DurationUs = US_PER_SECOND;

export interface StoreWatchListener {
  /** @param trouble - The failure that made it certain. */
  storeAway(trouble: unknown): void;
  /** @param awayUs - Time since the first failure. */
  storeBack(awayUs: DurationUs): void;
}

export class StoreWatch {
  private readonly clock: Clock;
  private readonly listener: StoreWatchListener;
  private reportedAway = false;
  private failingSince: InstantUs | undefined;
  private awaySince: InstantUs = 0;
  private spokeAt: InstantUs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, listener: StoreWatchListener) {
    this.clock = clock;
    this.listener = listener;
  }

  /** A call of the store brought what was asked for. */
  succeeded(): void {
    this.failingSince = undefined;
    const now = this.clock.monotonicUs();
    if (!this.reportedAway || now - this.spokeAt < QUIET_US) return;
    this.reportedAway = false;
    this.spokeAt = now;
    this.listener.storeBack(now - this.awaySince);
  }

  failed(trouble: unknown): void {
    const now = this.clock.monotonicUs();
    this.failingSince ??= now;
    if (this.reportedAway) return;
    if (now - this.failingSince < AWAY_AFTER_US || now - this.spokeAt < QUIET_US) return;
    this.reportedAway = true;
    this.awaySince = this.failingSince;
    this.spokeAt = now;
    this.listener.storeAway(trouble);
  }
}
