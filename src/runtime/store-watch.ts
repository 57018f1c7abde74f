/**
 * Judges from single outcomes of store calls whether the store is up or away, for people to read.
 *
 * Away means that nothing but failures came for a second: one late reply is business as usual, and
 * the pod answered by itself all along. While it is away the trouble that made it certain keeps its
 * name, because a server that hangs looks now like a timeout and now like a lost connection.
 */
import type { ExchangeTrouble } from "../core/effect.ts";
import { type DurationUs, type InstantUs, US_PER_SECOND } from "../core/units.ts";

/** Failures only, for this long, make the store count as away. */
export const AWAY_AFTER_US: DurationUs = US_PER_SECOND;

export class StoreWatch {
  private failingSince: InstantUs | undefined;
  private away: ExchangeTrouble | undefined;

  /** Takes note of an outcome and returns the state that follows from it. */
  judge(now: InstantUs, outcome: "ok" | ExchangeTrouble): "up" | ExchangeTrouble {
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
