/**
 * What a pod believes of the store, lane by lane.
 *
 * Connected (0): replies come. Doubtful (1): a batch has been unanswered for longer than a slow
 * reply explains; the flow shrinks towards the fallback. Isolated (2): unanswered for a second,
 * or the membership cannot be reached and the lane has heard nothing since; the limit's fallback
 * decides.
 */
import type { FleetSize } from "./fleet-size.ts";
import { type Lane, STALE_US } from "./lane.ts";
import type { Limit } from "./limit.ts";
import { type DurationUs, type InstantUs, US_PER_SECOND } from "./units.ts";

export type Tier = 0 | 1 | 2;

/** A tick later than this means that the process stood still, not that the store did. */
const STALL_US: DurationUs = US_PER_SECOND;

export class StoreHealth {
  readonly #lanes: readonly Lane[];
  readonly #fleet: FleetSize;
  readonly #commandTimeoutUs: DurationUs;
  #judgeFrom: InstantUs = Number.NEGATIVE_INFINITY;

  constructor(lanes: readonly Lane[], fleet: FleetSize, commandTimeoutUs: DurationUs) {
    this.#lanes = lanes;
    this.#fleet = fleet;
    this.#commandTimeoutUs = commandTimeoutUs;
  }

  /**
   * Takes note that a tick planned for `plannedAt` runs now. After a stall timers run before
   * replies that are already there, so an unanswered batch is not held against the store for
   * `graceUs`.
   */
  noteTick(plannedAt: InstantUs, now: InstantUs, graceUs: DurationUs): void {
    if (Number.isFinite(plannedAt) && now - plannedAt > STALL_US) this.#judgeFrom = now + graceUs;
  }

  tier(lane: Lane, limit: Limit, now: InstantUs): Tier {
    const since = lane.silentSince;
    if (since === Number.POSITIVE_INFINITY) {
      const isCutOff = this.#fleet.isolated && lane.lastReplyAt <= this.#fleet.failingSince;
      return isCutOff ? 2 : 0;
    }
    if (now < this.#judgeFrom) return 0;
    const age = now - since;
    if (age >= STALE_US) return 2;
    return age < this.#doubtAfterUs(lane, limit) ? 0 : 1;
  }

  /** How far a doubtful lane is on the way from connected (0) to isolated (1). */
  doubt(lane: Lane, limit: Limit, now: InstantUs): number {
    const from = Math.min(this.#doubtAfterUs(lane, limit), STALE_US - 1);
    return Math.max(0, Math.min(1, (now - lane.silentSince - from) / (STALE_US - from)));
  }

  /** Some part of the store is out of reach. */
  isIsolated(now: InstantUs): boolean {
    if (this.#fleet.isolated) return true;
    if (now < this.#judgeFrom) return false;
    return this.#lanes.some((lane) => now - lane.silentSince >= STALE_US);
  }

  /** The store has answered, and nothing asked of it is overdue. */
  isUp(now: InstantUs): boolean {
    const isOverdue = (lane: Lane): boolean =>
      now - lane.silentSince >= 2 * lane.patienceUs(this.#commandTimeoutUs);
    return (
      this.#fleet.joined &&
      this.#fleet.failingSince === Number.POSITIVE_INFINITY &&
      !this.#lanes.some(isOverdue)
    );
  }

  #doubtAfterUs(lane: Lane, limit: Limit): DurationUs {
    return 2 * limit.intervalUs + lane.patienceUs(this.#commandTimeoutUs);
  }
}
