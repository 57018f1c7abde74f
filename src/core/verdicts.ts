/** Where an account stands: the answer to a check, worded from the bucket that decided it. */
import { type BucketTable, DEFICIT, DEFICIT_TICKS } from "./bucket-table.ts";
import type { Decision, DenyReason, Source } from "./decision.ts";
import { remainingExact, waitExact } from "./exact-row.ts";
import { fallbackStart } from "./fallback.ts";
import type { FallbackBuckets } from "./fallback-buckets.ts";
import { fixedDraw } from "./fixed-draw.ts";
import type { FleetSize } from "./fleet-size.ts";
import type { HybridBuckets } from "./hybrid.ts";
import type { BucketShape, Limit } from "./limit.ts";
import { isStoreDecided, type Seat } from "./seat.ts";
import type { StoreDecided } from "./store-decided.ts";
import { type DurationUs, type InstantUs, type Tokens, US_PER_MS, US_PER_SECOND } from "./units.ts";

/** What to answer as a wait when nothing better is known: no row free, or the store away. */
const RETRY_FULL_US: DurationUs = 10 * US_PER_MS;
const RETRY_CLOSED_US: DurationUs = US_PER_SECOND;

/**
 * A decision that is written again for each check, so that an answer leaves nothing for the garbage
 * collector. Its numbers begin as doubles, because V8 then keeps doubles in place.
 */
export class Verdict implements Decision {
  limit!: Limit;
  allowed = true;
  wouldDeny = false;
  reason: DenyReason | undefined = undefined;
  remaining: Tokens = Number.NaN;
  resetAfterUs: DurationUs = Number.NaN;
  retryAfterUs: DurationUs = Number.NaN;
  source: Source = "local";
  degraded = false;
}

export interface VerdictParts {
  readonly podId: string;
  readonly table: BucketTable;
  readonly hybrid: HybridBuckets;
  readonly fallback: FallbackBuckets;
  readonly fleet: FleetSize;
  readonly storeDecided: StoreDecided;
}

/** The time after which a bucket of this level is full; debt has to be paid first. */
function fullAfter(limit: Limit, level: number): DurationUs {
  return Math.max(0, Math.ceil(((limit.burst - level) / limit.rate) * US_PER_SECOND));
}

export class Verdicts {
  readonly #parts: VerdictParts;

  constructor(parts: VerdictParts) {
    this.#parts = parts;
  }

  /**
   * Writes where the account stands, as the answer to its check.
   *
   * @param byStore - A reply decided it.
   */
  write(seat: Seat, now: InstantUs, byStore: boolean, out: Verdict): void {
    if (seat.footing === "hybrid" && seat.slot >= 0) {
      this.#writeHybrid(seat, now, byStore, out);
      return;
    }
    const { limit, footing, passed, slot } = seat;
    const isAlone = footing === "fallback" || footing === "open" || footing === "closed";
    const isLocal = !isAlone && !seat.isCharged;
    const isByStore = byStore && (seat.grant !== undefined || footing === "hybrid" || !passed);
    const reason = passed ? undefined : this.#reason(seat);
    const shape = footing === "fallback" || footing === "open" ? this.#fallbackShape(seat) : limit;
    const level = slot < 0 ? this.unknownTokens(seat) : this.#level(seat, shape, now);
    const left = Math.max(0, level);
    const cost = Math.max(1, seat.check.cost);
    out.limit = limit;
    out.allowed = passed || limit.shadow;
    out.wouldDeny = !passed && limit.shadow;
    out.reason = reason;
    out.remaining = Math.floor(passed ? left : Math.min(left, cost - 1));
    out.resetAfterUs = this.#resetAfter(seat, shape, level, now);
    out.retryAfterUs = passed ? 0 : this.#retryAfter(seat, reason, shape, now);
    out.source = !isLocal ? "fallback" : isByStore ? "store" : "local";
    out.degraded = !isLocal;
  }

  /** The same from flow, stock and what is believed of the level. */
  #writeHybrid(seat: Seat, now: InstantUs, byStore: boolean, out: Verdict): void {
    const { hybrid } = this.#parts;
    const { limit, passed, at } = seat;
    const cost = Math.max(1, seat.check.cost);
    const estimate = hybrid.estimate(at, limit, now);
    const own = passed ? Math.floor(hybrid.spendable(at)) : 0;
    const level = Math.min(limit.burst, own > 0 ? Math.max(estimate, own) : estimate);
    const left = Math.max(0, level);
    out.limit = limit;
    out.allowed = passed || limit.shadow;
    out.wouldDeny = !passed && limit.shadow;
    out.remaining = Math.floor(passed ? left : Math.min(left, cost - 1));
    out.resetAfterUs = fullAfter(limit, level);
    out.source = byStore ? "store" : "local";
    out.degraded = false;
    out.reason = passed ? undefined : this.#reason(seat);
    if (passed) out.retryAfterUs = 0;
    else if (out.reason !== "limit_exceeded") {
      out.retryAfterUs = this.#retryAfter(seat, out.reason, limit, now);
    } else out.retryAfterUs = hybrid.retryAfter(at, limit, cost, estimate, now);
  }

  /** Tokens of a key that has no row. */
  unknownTokens(seat: Seat): number {
    const { footing, limit } = seat;
    if (footing === "closed" || footing === "full") return 0;
    if (footing !== "fallback") return limit.burst;
    const pods = this.#parts.fleet.podsWhenIsolated(limit.fallback.maxPods);
    return fallbackStart(limit, pods, fixedDraw(this.#parts.podId, seat.check.key));
  }

  /** Tokens of the key; below 0 in debt. */
  #level(seat: Seat, shape: BucketShape, now: InstantUs): number {
    const { table } = this.#parts;
    if (seat.footing === "closed" || seat.footing === "full") return 0;
    if (isStoreDecided(seat)) {
      return Math.min(seat.limit.burst, this.#parts.storeDecided.estimate(seat, now));
    }
    return remainingExact(table, seat.slot, shape);
  }

  #resetAfter(seat: Seat, shape: BucketShape, level: number, now: InstantUs): DurationUs {
    const { footing, slot, limit } = seat;
    if (slot >= 0 && (footing === "sole" || footing === "fallback" || footing === "open")) {
      const { table } = this.#parts;
      const deficit = table.cells[table.at(slot) + DEFICIT] as number;
      const ticks = table.cells[table.at(slot) + DEFICIT_TICKS] as number;
      const fullAt = (ticks + Math.ceil(deficit / shape.refill)) * shape.tickUs;
      return Math.max(0, fullAt - now);
    }
    return fullAfter(limit, level);
  }

  #retryAfter(
    seat: Seat,
    reason: DenyReason | undefined,
    shape: BucketShape,
    now: InstantUs,
  ): DurationUs {
    if (reason === "cost_exceeds_burst") return Number.POSITIVE_INFINITY;
    if (reason === "store_unavailable") return RETRY_CLOSED_US;
    if (seat.footing === "full" || seat.slot < 0) return RETRY_FULL_US;
    if (isStoreDecided(seat)) return this.#parts.storeDecided.retryAfter(seat, now);
    const cost = Math.max(1, seat.check.cost);
    const { table, hybrid } = this.#parts;
    if (seat.footing === "hybrid") {
      const estimate = hybrid.estimate(seat.at, seat.limit, now);
      return hybrid.retryAfter(seat.at, seat.limit, cost, estimate, now);
    }
    // A cost above the fallback bucket can pass again when the store is back.
    const wait = waitExact(table, seat.slot, shape, cost, now);
    return wait === Number.POSITIVE_INFINITY ? RETRY_CLOSED_US : Math.max(1, wait);
  }

  #reason(seat: Seat): DenyReason {
    if (seat.check.cost > seat.limit.burst) return "cost_exceeds_burst";
    if (seat.footing === "closed") return "store_unavailable";
    if (seat.trouble === "none") return "limit_exceeded";
    if (seat.limit.fallback.policy === "closed") return "store_unavailable";
    return seat.trouble === "timeout" ? "store_timeout" : "store_overloaded";
  }

  #fallbackShape(seat: Seat): BucketShape {
    const { fallback, fleet } = this.#parts;
    if (seat.slot >= 0) return fallback.shapeOf(seat.slot);
    return fallback.shape(seat.limit, fleet.podsWhenIsolated(seat.limit.fallback.maxPods));
  }
}
