/** The engine of one process, joined to clock and store. */
import type { Logger } from "pino";
import { allLimits, type Config } from "./config/config.ts";
import { PodLimiter } from "./core/pod-limiter.ts";
import { type DurationUs, US_PER_MS } from "./core/units.ts";
import type { DurationCounts } from "./observe/duration-counts.ts";
import { StoreLog } from "./observe/store-log.ts";
import type { Clock } from "./ports/clock.ts";
import type { Coordinator } from "./ports/coordinator.ts";
import type { Random } from "./ports/random.ts";
import { ReconcileLoop } from "./runtime/reconcile-loop.ts";
import { StoreWatch } from "./runtime/store-watch.ts";
import { ahead } from "./runtime/wake-timer.ts";

/** The store of a primary answers from memory; a longer silence is like one of Redis. */
export const STORE_TIMEOUT_US: DurationUs = 50 * US_PER_MS;

export interface LoopParts {
  /** Who this process is to the fleet. */
  readonly memberId: string;
  /** Undefined for a process that is the whole fleet. */
  readonly coordinator: Coordinator | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly reconcileDurations: DurationCounts;
  /** The engine threw: a bug. */
  onFault(error: unknown): void;
}

export function createLoop(config: Config, parts: LoopParts): ReconcileLoop {
  const { memberId: podId, coordinator, clock, random, log, reconcileDurations, onFault } = parts;
  const { decisionTimeoutUs, keysMax, redis, workers: membersPerPod } = config;
  const limits = allLimits(config);
  const storeWatch = new StoreWatch(clock, new StoreLog(log));
  const engine = new PodLimiter(
    {
      limits,
      podId,
      membersPerPod,
      decisionTimeoutUs: ahead(decisionTimeoutUs),
      keysMax,
      sole: coordinator === undefined,
      lanes: coordinator?.lanes ?? 1,
      commandTimeoutUs: redis?.commandTimeoutUs ?? STORE_TIMEOUT_US,
    },
    clock.monotonicUs(),
  );
  return new ReconcileLoop({
    engine,
    limits,
    coordinator,
    clock,
    random,
    onFault,
    onStoreCall: (outcome, error) => storeWatch.note(outcome, error),
    onReply: (took) => reconcileDurations.observeUs(took),
  });
}
