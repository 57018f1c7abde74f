/**
 * What a pod sees of itself: how long its answers take, what happened in the last five minutes, and
 * which keys are busiest.
 */
import type { Counts } from "../core/tally.ts";
import { US_PER_SECOND } from "../core/units.ts";
import type { Clock } from "../ports/clock.ts";
import { DurationCounts } from "./duration-counts.ts";
import { History } from "./history.ts";
import { KeyRanking } from "./key-ranking.ts";
import { createMetrics, type Metrics, type MetricsView, transportCounts } from "./metrics.ts";

const LOOK_MS = 1_000;

export class Observation {
  readonly durations: ReturnType<typeof transportCounts> = transportCounts();
  readonly reconcileDurations: DurationCounts = new DurationCounts();
  readonly keys: KeyRanking = new KeyRanking();
  readonly history: History;
  readonly #clock: Clock;
  #lookedAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lookedAt = clock.monotonicUs();
    this.history = new History(this.#lookedAt);
  }

  /** @param others - What metrics tell of other parts. */
  metrics(others: Omit<MetricsView, "decisionDurations" | "reconcileDurations">): Metrics {
    const { durations: decisionDurations, reconcileDurations } = this;
    return createMetrics({ ...others, decisionDurations, reconcileDurations });
  }

  /** Takes a look once a second; keeps no process alive. @param counts - Cheap to ask. */
  start(counts: () => Counts): void {
    setInterval(() => this.look(counts()), LOOK_MS).unref();
  }

  /** Notes what happened since the last look. */
  look(counts: Counts): void {
    const now = this.#clock.monotonicUs();
    this.history.record(now, counts, Object.values(this.durations));
    this.keys.passed((now - this.#lookedAt) / US_PER_SECOND);
    this.#lookedAt = now;
  }
}
