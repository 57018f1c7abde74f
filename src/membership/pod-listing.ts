/**
 * What a source beside the store lists, on its way to the engine and to the log.
 *
 * A failure keeps the last number. Failures only, for half a minute, make the listing count as out
 * of reach. The log hears of trouble when a second attempt has failed as well, and once of its end.
 */
import { type DurationUs, type InstantUs, US_PER_SECOND } from "../core/units.ts";
import type { Clock } from "../ports/clock.ts";

export const LOST_AFTER_US: DurationUs = 30 * US_PER_SECOND;

export interface PodListingOptions {
  readonly clock: Clock;
  /** Told at every answer; undefined when the source has been out of reach for a while. */
  readonly tell: (pods: number | undefined) => void;
  readonly log: SourceLog;
}

/** For people; called when the state changes. */
export interface SourceLog {
  failing(error: unknown): void;
  recovered(pods: number): void;
}

export class PodListing {
  private readonly options: PodListingOptions;
  private failingSince: InstantUs | undefined;
  private failures = 0;
  private isLost = false;

  constructor(options: PodListingOptions) {
    this.options = options;
  }

  /** The source lists so many pods now. */
  counted(pods: number): void {
    const wasLogged = this.failures >= 2;
    this.failingSince = undefined;
    this.failures = 0;
    this.isLost = false;
    this.options.tell(pods);
    if (wasLogged) this.options.log.recovered(pods);
  }

  /** The source could not be asked, or its answer made no sense. */
  failed(error: unknown): void {
    const { clock, tell, log } = this.options;
    const now = clock.monotonicUs();
    this.failingSince ??= now;
    this.failures += 1;
    if (this.failures === 2) log.failing(error);
    if (this.isLost || now - this.failingSince < LOST_AFTER_US) return;
    this.isLost = true;
    tell(undefined);
  }
}
