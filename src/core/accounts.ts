/**
 * The account behind one check: which bucket decides it now, and what is done to it: take, undo,
 * note the outcome, charge.
 */
import { type Book, type BucketTable, DEFICIT_TICKS, FALLBACK, USED_AT } from "./bucket-table.ts";
import type { Check } from "./decision.ts";
import { toTicks } from "./deficit-bucket.ts";
import type { Eviction } from "./eviction.ts";
import { coversExact, spendExact, touchExact } from "./exact-row.ts";
import { groupOfKey } from "./exchange.ts";
import { fallbackRate } from "./fallback.ts";
import type { FallbackBuckets } from "./fallback-buckets.ts";
import { fixedDraw } from "./fixed-draw.ts";
import type { FleetSize } from "./fleet-size.ts";
import type { HeldCheck, HeldChecks } from "./held-checks.ts";
import { coldTokens, type HybridBuckets } from "./hybrid.ts";
import { limitForKey } from "./limit.ts";
import { Peeks } from "./peeks.ts";
import type { RowSchedule } from "./row-schedule.ts";
import { type Footing, isStoreDecided, type Seat } from "./seat.ts";
import type { StoreCalls } from "./store-calls.ts";
import type { StoreDecided } from "./store-decided.ts";
import type { StoreHealth } from "./store-health.ts";
import type { StoreLink } from "./store-link.ts";
import type { InstantUs, Tokens } from "./units.ts";
import type { Verdicts } from "./verdicts.ts";

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
  readonly verdicts: Verdicts;
  readonly eviction: Eviction;
  readonly held: HeldChecks;
  readonly calls: StoreCalls;
  readonly storeDecided: StoreDecided;
}

export class Accounts {
  readonly #parts: AccountParts;
  readonly #peeks: Peeks;

  constructor(parts: AccountParts) {
    this.#parts = parts;
    this.#peeks = new Peeks(parts);
  }

  /** Finds the account of a check and brings it to `now`. */
  sit(seat: Seat, book: Book, check: Check, now: InstantUs): void {
    seat.check = check;
    seat.book = book;
    seat.limit = limitForKey(book.limit, check.key);
    seat.passed = false;
    seat.wasAsked = false;
    seat.trouble = "none";
    seat.isCharged = false;
    seat.grant = undefined;
    seat.leaseSpend = undefined;
    seat.fromStock = 0;
    seat.slot = book.slots.get(check.key) ?? -1;
    const { table, sole, hybrid } = this.#parts;
    if (seat.slot < 0) {
      seat.footing = this.#footing(seat, now);
      const isPeek = check.cost === 0;
      const needsRow = isPeek ? this.#peeks.needsRow(seat) : check.cost <= seat.limit.burst;
      if (needsRow && seat.footing !== "closed") this.#open(seat, now);
      if (seat.slot >= 0) this.#touch(seat, now);
      return;
    }
    seat.at = table.awaken(seat.slot);
    if (sole) {
      seat.footing = "sole";
      touchExact(table, seat.slot, seat.limit, now);
      return;
    }
    seat.footing = this.#footing(seat, now);
    if (seat.footing === "hybrid" && seat.tier === 0) {
      hybrid.touch(seat.at, now, hybrid.flowRate(seat.at));
    } else this.#touch(seat, now);
  }

  /** Spends the cost if the account covers it. A peek asks for one token and spends none. */
  take(seat: Seat, now: InstantUs): boolean {
    const { cost } = seat.check;
    const { limit, slot } = seat;
    if (cost > limit.burst) return false;
    if (slot < 0) return this.#peeks.passesUnknown(seat);
    if (cost === 0 && this.#peeks.asksFirst(seat, now)) return false;
    const { table, hybrid, fallback } = this.#parts;
    const asked = Math.max(1, cost);
    switch (seat.footing) {
      case "sole":
        if (!coversExact(table, slot, limit, asked)) return false;
        if (cost > 0) spendExact(table, slot, limit, cost);
        return true;
      case "hybrid":
        if (cost === 0) return this.#peeks.passesHybrid(seat, now);
        if (!hybrid.covers(seat.at, cost)) return false;
        seat.fromStock = hybrid.take(seat.at, cost);
        return true;
      case "leased":
      case "exact":
        return this.#parts.storeDecided.take(seat, now);
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
  undo(seat: Seat, now: InstantUs): void {
    const { cost } = seat.check;
    if (!seat.passed || cost === 0) return;
    const { table, hybrid, fallback } = this.#parts;
    if (seat.footing === "sole") spendExact(table, seat.slot, seat.limit, -cost);
    else if (seat.footing === "hybrid") hybrid.untake(seat.at, cost, seat.fromStock);
    else if (isStoreDecided(seat)) this.#parts.storeDecided.undo(seat, now);
    else fallback.spend(seat.slot, -cost);
  }

  /** Whether the store should be asked before this check is refused. */
  isWorthAsking(seat: Seat, now: InstantUs): boolean {
    if (this.#parts.link.isLeaving || seat.slot < 0) return false;
    if (seat.check.cost === 0) return this.#peeks.asksFirst(seat, now);
    if (seat.check.cost > seat.limit.burst) return false;
    if (isStoreDecided(seat)) return this.#parts.storeDecided.isWorthAsking(seat, now);
    // A shadow limit is not worth the wait: its denial is not enforced.
    if (seat.footing !== "hybrid" || seat.limit.shadow || seat.tier !== 0) return false;
    return this.#parts.hybrid.isWorthAsking(seat.at, seat.limit, seat.check.cost, now);
  }

  /** The cost was spent for good. @param isNew - The demand was not counted before. */
  noteAdmitted(seat: Seat, now: InstantUs, isNew: boolean): void {
    const { slot, at, limit } = seat;
    if (seat.footing === "sole" || seat.check.cost === 0) return;
    const { hybrid, schedule, storeDecided } = this.#parts;
    if (isStoreDecided(seat)) {
      storeDecided.noteAdmitted(seat, now, isNew);
      return;
    }
    if (isNew) hybrid.addDemand(at, limit, seat.check.cost);
    hybrid.noteAdmitted(at, seat.check.cost);
    if (seat.footing !== "hybrid") {
      schedule.markDirty(slot, now);
      return;
    }
    schedule.markSpent(slot, at, limit, now);
    if (hybrid.isLow(at)) schedule.triggerSoon(slot, at, now);
  }

  /** The account did not cover the cost. @param isNew - The demand was not counted before. */
  noteDenied(seat: Seat, now: InstantUs, isNew: boolean): void {
    const { cost } = seat.check;
    if (seat.footing === "sole" || seat.slot < 0 || cost === 0 || cost > seat.limit.burst) return;
    const { hybrid, schedule, storeDecided } = this.#parts;
    if (isStoreDecided(seat)) {
      storeDecided.noteDenied(seat, now, isNew);
      return;
    }
    if (isNew) hybrid.addDemand(seat.at, seat.limit, cost);
    if (seat.footing !== "hybrid") return;
    hybrid.noteRefused(seat.at, cost, now);
    schedule.triggerDenied(seat.slot, seat.at, seat.limit, now);
  }

  /**
   * The check waits for the store; its row goes into the next batch or call.
   *
   * @param cost - What the check asks of this row in all; it may name a key twice.
   */
  hold(held: HeldCheck, seat: Seat, cost: Tokens, now: InstantUs): void {
    if (isStoreDecided(seat)) {
      this.#parts.storeDecided.hold(held, seat, cost, now);
      return;
    }
    this.#parts.held.awaitReconcile(held, seat.slot, cost);
    this.#parts.hybrid.addDemand(seat.at, seat.limit, cost);
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
    if (isStoreDecided(seat)) {
      this.#parts.storeDecided.charge(seat, now);
      return;
    }
    if (seat.footing !== "hybrid") fallback.spend(seat.slot, cost);
    // A refund gives this pod nothing at once: it belongs to the fleet and travels with the report.
    else hybrid.takeAnyway(seat.at, cost);
    if (cost > 0) hybrid.addDemand(seat.at, seat.limit, cost);
    schedule.markDirty(seat.slot, now);
    schedule.markDue(seat.slot);
  }

  #footing(seat: Seat, now: InstantUs): Footing {
    const { sole, health, schedule, table, link } = this.#parts;
    if (sole) return "sole";
    const lane =
      seat.slot >= 0 ? schedule.laneOf(seat.slot) : link.laneOfGroup(groupOfKey(seat.check.key));
    seat.tier = health.tier(lane, seat.limit, now);
    if (seat.tier === 2) {
      return seat.limit.fallback.policy === "local" ? "fallback" : seat.limit.fallback.policy;
    }
    const isSettling = seat.slot >= 0 && ((table.flags[seat.slot] as number) & FALLBACK) !== 0;
    const { mode } = seat.limit;
    if (mode === "leased" || mode === "exact") {
      if (isSettling) this.#parts.storeDecided.recover(seat.slot, now);
      return mode;
    }
    return isSettling ? "fallback" : "hybrid";
  }

  /** Gives the key a row. */
  #open(seat: Seat, now: InstantUs): void {
    const { table, hybrid, fallback, fleet, link, eviction, podId } = this.#parts;
    if (table.isFull && !eviction.makeRoom(now)) {
      seat.footing = "full";
      return;
    }
    const { limit } = seat;
    const slot = table.add(seat.book, limit, seat.check.key, now);
    seat.slot = slot;
    seat.at = table.at(slot);
    if (seat.footing === "sole") {
      table.cells[seat.at + DEFICIT_TICKS] = toTicks(limit, now);
      return;
    }
    const group = groupOfKey(seat.check.key);
    table.lanes[slot] = link.laneOfGroup(group).index;
    const isCrowded = eviction.isCrowded(now);
    const pods = fleet.pods(limit.fallback.maxPods);
    const hasCold = fleet.joined && !isCrowded && seat.footing === "hybrid";
    hybrid.open(seat.at, limit, pods, hasCold ? Math.floor(coldTokens(limit) / pods) : 0, now);
    if (seat.footing === "hybrid" || isStoreDecided(seat)) return;
    const podsAlone = fleet.podsWhenIsolated(limit.fallback.maxPods);
    if (isCrowded) fallback.fill(slot, podsAlone, 0, now);
    else fallback.open(slot, podsAlone, fixedDraw(podId, seat.check.key), now);
  }

  #touch(seat: Seat, now: InstantUs): void {
    const { table, hybrid, fallback, fleet, health, schedule } = this.#parts;
    const { slot, at, limit, footing } = seat;
    if (footing === "sole") {
      touchExact(table, slot, limit, now);
    } else if (footing === "hybrid") {
      const rate = hybrid.flowRate(at);
      if (seat.tier === 0) {
        hybrid.touch(at, now, rate);
        return;
      }
      const lane = schedule.laneOf(slot);
      const alone = fallbackRate(limit, fleet.podsWhenIsolated(limit.fallback.maxPods));
      const doubt = health.doubt(lane, limit, now);
      hybrid.touch(at, now, rate + (Math.min(rate, alone) - rate) * doubt);
    } else if (isStoreDecided(seat)) {
      table.cells[at + USED_AT] = now;
    } else if (footing === "fallback" || footing === "open") {
      const isIsolated = seat.tier === 2;
      const pods = fleet.podsWhenIsolated(limit.fallback.maxPods);
      const isEntering = isIsolated && ((table.flags[slot] as number) & FALLBACK) === 0;
      if (isEntering && limit.mode !== "hybrid") this.#enterFromStore(seat, pods, now);
      else if (isIsolated) fallback.enter(slot, pods, now);
      fallback.touch(slot, now);
    }
  }

  /** A leased or exact key starts its fallback from the level that the store last told. */
  #enterFromStore(seat: Seat, pods: number, now: InstantUs): void {
    const { fallback, storeDecided, podId, calls } = this.#parts;
    const { limit, slot } = seat;
    const asStored = { ...seat, footing: limit.mode === "leased" ? "leased" : "exact" } as Seat;
    const level = Math.max(0, Math.min(limit.burst, storeDecided.estimate(asStored, now)));
    const part = (limit.fallback.margin * level) / pods;
    const isSmall = limit.fallback.margin * limit.burst < pods;
    const draw = isSmall ? fixedDraw(podId, seat.check.key) : 0;
    calls.returnLeases(slot);
    fallback.begin(slot, pods, Math.min(part + draw, Math.max(1, part)), now);
  }
}
