/**
 * The account behind one check: which bucket decides it now, and the four things that are done to
 * it: take, undo, note the outcome, say where it stands.
 *
 * A check stands on one of these footings. `sole`: no store, an ideal bucket. `hybrid`: flow and
 * stock of this pod. `fallback`: the store is out of reach and the limit is decided locally, more
 * strictly. `open`, `closed`: the same with the limit's other policies. `full`: no row is to be had.
 */
import {
  type Book,
  type BucketTable,
  DEFICIT,
  DEFICIT_TICKS,
  FALLBACK,
  RECENT,
  USED_AT,
} from "./bucket-table.ts";
import type { Check, Decision, DenyReason, Source } from "./decision.ts";
import { coversExact, remainingExact, spendExact, touchExact, waitExact } from "./exact-row.ts";
import { groupOfKey } from "./exchange.ts";
import { fallbackRate, fallbackStart } from "./fallback.ts";
import type { FallbackBuckets } from "./fallback-buckets.ts";
import type { FleetSize } from "./fleet-size.ts";
import { coldTokens, type HybridBuckets } from "./hybrid.ts";
import { LANE } from "./hybrid-row.ts";
import { type BucketShape, type Limit, limitForKey } from "./limit.ts";
import type { RowSchedule } from "./row-schedule.ts";
import type { StoreHealth } from "./store-health.ts";
import type { StoreLink } from "./store-link.ts";
import { type DurationUs, type InstantUs, type Tokens, US_PER_MS, US_PER_SECOND } from "./units.ts";

/** A key not used for so long has nothing to tell and is forgotten. */
export const IDLE_US: DurationUs = 5 * US_PER_SECOND;
/** What to answer as a wait when nothing better is known: no row free, or the store away. */
const RETRY_FULL_US: DurationUs = 10 * US_PER_MS;
const RETRY_CLOSED_US: DurationUs = US_PER_SECOND;

export type Footing = "sole" | "hybrid" | "fallback" | "open" | "closed" | "full";

/** One check on its way through a decision. Seats are used again; nothing is kept in them. */
export class Seat {
  check!: Check;
  /** The limit in force for the key. */
  limit!: Limit;
  book!: Book;
  /** -1 when the key has no row (a peek makes none). */
  slot = -1;
  footing: Footing = "sole";
  passed = false;
  fromStock: Tokens = 0;
}

export interface AccountParts {
  readonly sole: boolean;
  readonly podId: string;
  readonly table: BucketTable;
  readonly hybrid: HybridBuckets;
  readonly fallback: FallbackBuckets;
  readonly fleet: FleetSize;
  readonly schedule: RowSchedule;
  readonly health: StoreHealth;
  readonly link: StoreLink;
}

export class Accounts {
  readonly #parts: AccountParts;
  /** When a key that was in use had to make room for another. */
  #crowdedAt: InstantUs = Number.NEGATIVE_INFINITY;

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  /** Finds the account of a check and brings it to `now`. */
  sit(seat: Seat, book: Book, check: Check, now: InstantUs): void {
    seat.check = check;
    seat.book = book;
    seat.limit = limitForKey(book.limit, check.key);
    seat.passed = false;
    seat.fromStock = 0;
    seat.slot = book.slots.get(check.key) ?? -1;
    seat.footing = this.#footing(seat, now);
    const needsRow = check.cost > 0 && check.cost <= seat.limit.burst;
    if (seat.slot < 0 && needsRow && seat.footing !== "closed") this.#open(seat, now);
    if (seat.slot >= 0) this.#touch(seat, now);
  }

  /** Spends the cost if the account covers it. A peek asks for one token and spends none. */
  take(seat: Seat): boolean {
    const { cost } = seat.check;
    const { limit, slot } = seat;
    if (cost > limit.burst) return false;
    if (slot < 0) return this.#coversUnknown(seat);
    const { table, hybrid, fallback } = this.#parts;
    const asked = Math.max(1, cost);
    switch (seat.footing) {
      case "sole":
        if (!coversExact(table, slot, limit, asked)) return false;
        if (cost > 0) spendExact(table, slot, limit, cost);
        return true;
      case "hybrid":
        if (!hybrid.covers(slot, asked)) return false;
        if (cost > 0) seat.fromStock = hybrid.take(slot, cost);
        return true;
      case "fallback":
        if (!coversExact(table, slot, fallback.shapeOf(slot), asked)) return false;
        if (cost > 0) fallback.spend(slot, cost);
        return true;
      case "open":
        if (cost > 0) fallback.spend(slot, cost);
        return true;
      case "closed":
      case "full":
        return false;
    }
  }

  /** Undoes a `take` that passed, in the same call. */
  undo(seat: Seat): void {
    const { cost } = seat.check;
    if (!seat.passed || cost === 0) return;
    const { table, hybrid, fallback } = this.#parts;
    if (seat.footing === "sole") spendExact(table, seat.slot, seat.limit, -cost);
    else if (seat.footing === "hybrid") hybrid.untake(seat.slot, cost, seat.fromStock);
    else fallback.spend(seat.slot, -cost);
  }

  /** Whether the store should be asked before this check is refused. */
  isWorthAsking(seat: Seat, now: InstantUs): boolean {
    if (seat.footing !== "hybrid" || this.#parts.link.isLeaving || seat.limit.shadow) return false;
    if (seat.check.cost > seat.limit.burst || seat.check.cost === 0) return false;
    const lane = this.#parts.schedule.laneOf(seat.slot);
    if (this.#parts.health.tier(lane, seat.limit, now) !== 0) return false;
    return this.#parts.hybrid.isWorthAsking(seat.slot, seat.limit, seat.check.cost, now);
  }

  /** The cost was spent for good. @param isNew - The demand was not counted before. */
  noteAdmitted(seat: Seat, now: InstantUs, isNew: boolean): void {
    const { slot, limit } = seat;
    if (seat.footing === "sole" || seat.check.cost === 0) return;
    const { hybrid, schedule } = this.#parts;
    if (isNew) hybrid.addDemand(slot, limit, seat.check.cost);
    hybrid.noteAdmitted(slot, seat.check.cost);
    schedule.markDirty(slot, now);
    if (seat.footing === "hybrid" && hybrid.isLow(slot)) schedule.triggerSoon(slot, now);
  }

  /** The account did not cover the cost. @param isNew - The demand was not counted before. */
  noteDenied(seat: Seat, now: InstantUs, isNew: boolean): void {
    const { cost } = seat.check;
    if (seat.footing === "sole" || seat.slot < 0 || cost === 0 || cost > seat.limit.burst) return;
    const { hybrid, schedule } = this.#parts;
    if (isNew) hybrid.addDemand(seat.slot, seat.limit, cost);
    if (seat.footing !== "hybrid") return;
    hybrid.noteRefused(seat.slot, cost, now);
    schedule.triggerDenied(seat.slot, now);
  }

  /** The check waits for the store; its row goes into the next batch. */
  noteHeld(seat: Seat): void {
    this.#parts.hybrid.addDemand(seat.slot, seat.limit, seat.check.cost);
    this.#parts.schedule.markDue(seat.slot);
  }

  /** Debits (or refunds) whatever the account holds. */
  charge(seat: Seat, now: InstantUs): void {
    const { cost } = seat.check;
    const { table, hybrid, fallback, schedule } = this.#parts;
    if (cost === 0 || seat.slot < 0) return;
    if (seat.footing === "sole") {
      spendExact(table, seat.slot, seat.limit, cost);
      return;
    }
    if (seat.footing !== "hybrid") fallback.spend(seat.slot, cost);
    // A refund gives this pod nothing at once: it belongs to the fleet and travels with the report.
    else hybrid.takeAnyway(seat.slot, cost);
    if (cost > 0) hybrid.addDemand(seat.slot, seat.limit, cost);
    schedule.markDirty(seat.slot, now);
    schedule.markDue(seat.slot);
  }

  /** Where the account stands, as the answer to its check. @param byStore - A reply decided it. */
  verdict(seat: Seat, now: InstantUs, byStore: boolean): Decision {
    const { limit, footing, passed, slot } = seat;
    const isLocal = footing === "sole" || footing === "hybrid" || footing === "full";
    const source: Source = !isLocal ? "fallback" : byStore ? "store" : "local";
    const reason = passed ? undefined : this.#reason(seat);
    const shape = footing === "fallback" || footing === "open" ? this.#fallbackShape(seat) : limit;
    const left = slot < 0 ? this.#unknownLeft(seat) : this.#left(seat, shape, now);
    const cost = Math.max(1, seat.check.cost);
    return {
      limit,
      allowed: passed || limit.shadow,
      wouldDeny: !passed && limit.shadow,
      reason,
      remaining: Math.floor(passed ? left : Math.min(left, cost - 1)),
      resetAfterUs: this.#resetAfter(seat, shape, left, now),
      retryAfterUs: passed ? 0 : this.#retryAfter(seat, reason, shape, now),
      source,
      degraded: !isLocal,
    };
  }

  #footing(seat: Seat, now: InstantUs): Footing {
    const { sole, health, schedule, table, link } = this.#parts;
    if (sole) return "sole";
    const lane =
      seat.slot >= 0 ? schedule.laneOf(seat.slot) : link.laneOfGroup(groupOfKey(seat.check.key));
    if (health.tier(lane, seat.limit, now) === 2) {
      return seat.limit.fallback.policy === "local" ? "fallback" : seat.limit.fallback.policy;
    }
    const isSettling = seat.slot >= 0 && ((table.flags[seat.slot] as number) & FALLBACK) !== 0;
    return isSettling ? "fallback" : "hybrid";
  }

  /** Gives the key a row. */
  #open(seat: Seat, now: InstantUs): void {
    const { table, hybrid, fallback, fleet, link, podId } = this.#parts;
    if (table.isFull && !this.#makeRoom(now)) {
      seat.footing = "full";
      return;
    }
    const { limit } = seat;
    const slot = table.add(seat.book, limit, seat.check.key, now);
    seat.slot = slot;
    if (seat.footing === "sole") {
      table.cells[table.at(slot) + DEFICIT_TICKS] = Math.floor(now / limit.tickUs);
      return;
    }
    const group = groupOfKey(seat.check.key);
    table.cells[table.at(slot) + LANE] = link.laneOfGroup(group).index;
    const isCrowded = now - this.#crowdedAt < IDLE_US;
    const pods = fleet.pods(limit.fallback.maxPods);
    const hasCold = fleet.joined && !isCrowded && seat.footing === "hybrid";
    hybrid.open(slot, limit, pods, hasCold ? Math.floor(coldTokens(limit) / pods) : 0, now);
    if (seat.footing === "hybrid") return;
    const podsAlone = fleet.podsWhenIsolated(limit.fallback.maxPods);
    if (isCrowded) fallback.fill(slot, podsAlone, 0, now);
    else fallback.open(slot, podsAlone, fixedDraw(podId, seat.check.key), now);
  }

  #makeRoom(now: InstantUs): boolean {
    const { table, link, sole } = this.#parts;
    const victim = table.victim();
    if (victim === undefined) return false;
    if (now - (table.cells[table.at(victim) + USED_AT] as number) < IDLE_US) this.#crowdedAt = now;
    if (!sole) link.orphan(victim, now);
    table.remove(victim);
    table.evicted += 1;
    return true;
  }

  #touch(seat: Seat, now: InstantUs): void {
    const { table, hybrid, fallback, fleet, health, schedule } = this.#parts;
    const { slot, limit, footing } = seat;
    table.flags[slot] = (table.flags[slot] as number) | RECENT;
    if (footing === "sole") {
      touchExact(table, slot, limit, now);
    } else if (footing === "hybrid") {
      const rate = hybrid.flowRate(slot);
      const lane = schedule.laneOf(slot);
      if (health.tier(lane, limit, now) === 0) {
        hybrid.touch(slot, now, rate);
        return;
      }
      const alone = fallbackRate(limit, fleet.podsWhenIsolated(limit.fallback.maxPods));
      const doubt = health.doubt(lane, limit, now);
      hybrid.touch(slot, now, rate + (Math.min(rate, alone) - rate) * doubt);
    } else if (footing === "fallback" || footing === "open") {
      const isIsolated = health.tier(schedule.laneOf(slot), limit, now) === 2;
      if (isIsolated) fallback.enter(slot, fleet.podsWhenIsolated(limit.fallback.maxPods), now);
      fallback.touch(slot, now);
    }
  }

  #coversUnknown(seat: Seat): boolean {
    if (seat.footing === "closed" || seat.footing === "full") return false;
    return seat.footing !== "fallback" || this.#unknownLeft(seat) >= 1;
  }

  /** Tokens of a key that has no row. */
  #unknownLeft(seat: Seat): number {
    const { footing, limit } = seat;
    if (footing === "closed" || footing === "full") return 0;
    if (footing !== "fallback") return limit.burst;
    const pods = this.#parts.fleet.podsWhenIsolated(limit.fallback.maxPods);
    return fallbackStart(limit, pods, fixedDraw(this.#parts.podId, seat.check.key));
  }

  #left(seat: Seat, shape: BucketShape, now: InstantUs): number {
    const { table, hybrid } = this.#parts;
    if (seat.footing === "closed" || seat.footing === "full") return 0;
    if (seat.footing !== "hybrid") return remainingExact(table, seat.slot, shape);
    const estimate = Math.max(0, hybrid.estimate(seat.slot, seat.limit, now));
    const own = Math.floor(hybrid.spendable(seat.slot));
    return Math.min(seat.limit.burst, seat.passed ? Math.max(estimate, own) : estimate);
  }

  #resetAfter(seat: Seat, shape: BucketShape, left: number, now: InstantUs): DurationUs {
    const { footing, slot, limit } = seat;
    if (slot >= 0 && (footing === "sole" || footing === "fallback" || footing === "open")) {
      const { table } = this.#parts;
      const deficit = table.cells[table.at(slot) + DEFICIT] as number;
      const ticks = table.cells[table.at(slot) + DEFICIT_TICKS] as number;
      const fullAt = (ticks + Math.ceil(deficit / shape.refill)) * shape.tickUs;
      return Math.max(0, fullAt - now);
    }
    return Math.max(0, Math.ceil(((limit.burst - left) / limit.rate) * US_PER_SECOND));
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
    const cost = Math.max(1, seat.check.cost);
    const { table, hybrid } = this.#parts;
    if (seat.footing === "hybrid") return hybrid.retryAfter(seat.slot, seat.limit, cost, now);
    // A cost above the fallback bucket can pass again when the store is back.
    const wait = waitExact(table, seat.slot, shape, cost, now);
    return wait === Number.POSITIVE_INFINITY ? RETRY_CLOSED_US : Math.max(1, wait);
  }

  #reason(seat: Seat): DenyReason {
    if (seat.check.cost > seat.limit.burst) return "cost_exceeds_burst";
    return seat.footing === "closed" ? "store_unavailable" : "limit_exceeded";
  }

  #fallbackShape(seat: Seat): BucketShape {
    const { fallback, fleet } = this.#parts;
    if (seat.slot >= 0) return fallback.shapeOf(seat.slot);
    return fallback.shape(seat.limit, fleet.podsWhenIsolated(seat.limit.fallback.maxPods));
  }
}

/** A draw in [0, 1) that is the same for the same pod and key and spread over pods. */
function fixedDraw(podId: string, key: string): number {
  let hash = 0x9e3779b9;
  const text = `${podId}\0${key}`;
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x85ebca6b);
    hash ^= hash >>> 13;
  }
  return (hash >>> 0) / 2 ** 32;
}
