/**
 * Judges from single outcomes of store calls whether the store is up or away, for people to read.
 *
 * Away means that nothing but failures came for a second: one late reply is business as usual, and
 * the pod answered by itself all along. While it is away the trouble that made it certain keeps its
 * name, because a server that hangs looks now like a timeout and now like a lost connection.
 */
import type { ExchangeTrouble } from "../core/effect.ts";
import { type DurationUs, type InstantUs, US_PER_SECOND } from "../core/units.ts";
import type { Clock } from "../ports/clock.ts";

export type StoreState = "up" | ExchangeTrouble;

/** Who writes it down; told at every outcome, not only at a change. */
export interface StoreStateLog {
  observe(now: InstantUs, state: StoreState, detail: string): void;
}

/** Failures only, for this long, make the store count as away. */
export const AWAY_AFTER_US: DurationUs = US_PER_SECOND;

export class StoreWatch {
  private readonly clock: Clock;
  private readonly log: StoreStateLog;
  private failingSince: InstantUs | undefined;
  private away: ExchangeTrouble | undefined;

  constructor(clock: Clock, log: StoreStateLog) {
    this.clock = clock;
    this.log = log;
  }

  /** Takes note of how a call of the store ended. @param error - What was behind a failure. */
  note(outcome: "ok" | ExchangeTrouble, error?: unknown): void {
    const now = this.clock.monotonicUs();
    this.log.observe(now, this.judge(now, outcome), error instanceof Error ? error.message : "");
  }

  private judge(now: InstantUs, outcome: "ok" | ExchangeTrouble): StoreState {
    if (outcome === "ok") {
      this.failingSince = undefined;
      this.away = undefined;
      return "up";
    }
    this.failingSince ??= now;
    if (now - this.failingSince >= AWAY_AFTER_US) this.away ??= outcome;
    return this.away ?? "up";
  }
}
