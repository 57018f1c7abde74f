/**
 * Accounts of leased and exact limits: whatever is not in the pod already is asked of the store, or
 * denied at once when the answer is known.
 */
import { type BucketTable, FALLBACK } from "./bucket-table.ts";
import type { FallbackBuckets } from "./fallback-buckets.ts";
import type { Grant, HeldCheck } from "./held-checks.ts";
import {
  HEARD_AT,
  IN_FLIGHT_TOKENS,
  ISOLATED_AT,
  LEVEL,
  REPLIED_AT,
  UNREPORTED,
} from "./hybrid-row.ts";
import { grownLevel, type KnownLevel, laterWord } from "./known-level.ts";
import type { RowSchedule } from "./row-schedule.ts";
import type { Seat } from "./seat.ts";
import type { StoreCalls } from "./store-calls.ts";
import { type DurationUs, type InstantUs, type Tokens, US_PER_MS, US_PER_SECOND } from "./units.ts";

/** What to answer as a wait when the store did not answer. */
const RETRY_TIMEOUT_US: DurationUs = 50 * US_PER_MS;

export interface StoreDecidedParts {
  readonly table: BucketTable;
  readonly fallback: FallbackBuckets;
  readonly schedule: RowSchedule;
  readonly calls: StoreCalls;
}

export class StoreDecided {
  readonly #parts: StoreDecidedParts;

  constructor(parts: StoreDecidedParts) {
    this.#parts = parts;
  }

  /** Spends the cost if it is in the pod, or was granted; see `Accounts.take`. */
  take(seat: Seat, now: InstantUs): boolean {
    const { slot, check, limit } = seat;
    const { calls } = this.#parts;
    seat.creditSpend = undefined;
    if (check.cost === 0) return this.estimate(seat, now) >= 1 && this.#wait(seat, 1, now) === 0;
    if (seat.grant !== undefined) return true;
    if (seat.footing === "leased") {
      const lease = calls.accounts.lease(slot, now);
      if (!calls.accounts.isWaitedFor(slot) && lease.purse.have(now) >= check.cost) {
        seat.leaseSpend = lease.purse.spend(check.cost);
        return true;
      }
    } else {
      seat.creditSpend = calls.accounts.take(slot).spendCredit(check.cost, now);
      if (seat.creditSpend !== undefined) return true;
    }
    if (seat.trouble === "none" && this.#wait(seat, check.cost, now) === 0) {
      seat.trouble = this.#trouble(seat);
    }
    seat.isCharged = seat.trouble !== "none" && limit.fallback.policy === "open";
    return seat.isCharged;
  }

  /** Undoes a `take` of the same call. What a reply granted is given back by `refuse`. */
  undo(seat: Seat, now: InstantUs): void {
    const { calls } = this.#parts;
    if (seat.grant !== undefined || seat.isCharged) return;
    if (seat.leaseSpend !== undefined)
      calls.accounts.lease(seat.slot, now).purse.unspend(seat.leaseSpend);
    else if (seat.creditSpend !== undefined)
      calls.accounts.take(seat.slot).unspendCredit(seat.creditSpend);
  }

  isWorthAsking(seat: Seat, now: InstantUs): boolean {
    if (seat.trouble !== "none") return false;
    return this.#wait(seat, seat.check.cost, now) === 0;
  }

  /** A peek: nothing was heard of the key for an interval, and asking could tell. */
  isUnheard(seat: Seat, now: InstantUs): boolean {
    if (this.#wait(seat, 1, now) > 0 || this.#trouble(seat) !== "none") return false;
    const heardAt = this.#known(seat, now)?.at ?? Number.NEGATIVE_INFINITY;
    return now - heardAt > seat.limit.intervalUs;
  }

  /** The check waits for a call of its row. */
  hold(held: HeldCheck, seat: Seat, cost: Tokens, now: InstantUs): void {
    this.#noteDemand(seat, now);
    this.#parts.calls.await(held, seat.slot, cost);
  }

  noteAdmitted(seat: Seat, now: InstantUs, isNew: boolean): void {
    const { calls, schedule, table } = this.#parts;
    if (isNew) this.#noteDemand(seat, now);
    if (seat.isCharged) this.#owe(seat.slot, seat.check.cost);
    if (seat.footing !== "leased") return;
    schedule.markDirty(seat.slot, now);
    const lease = calls.accounts.lease(seat.slot, now);
    const isCalling = calls.isCalling(seat.slot);
    if (
      !isCalling &&
      lease.shouldRenew(table.limitOf(seat.slot), calls.leaseTerms(seat.slot, now))
    ) {
      calls.want(seat.slot);
    }
  }

  noteDenied(seat: Seat, now: InstantUs, isNew: boolean): void {
    if (isNew) this.#noteDemand(seat, now);
  }

  /** Gives back what a reply granted for a check that another limit denied. */
  refuse(slot: number, grant: Grant, now: InstantUs): void {
    const { calls } = this.#parts;
    if (grant.kind === "take" && grant.cost === 0) return;
    if (grant.kind === "lease") {
      calls.accounts.lease(slot, now).purse.unspend(grant.spend);
      return;
    }
    calls.accounts.take(slot).giveBack(grant.cost, grant.taken);
    calls.wantTake(slot);
  }

  /** Debits or refunds through the exactly-once stream; a lease pays what it can. */
  charge(seat: Seat, now: InstantUs): void {
    const { cost } = seat.check;
    const isLease = seat.footing === "leased" && cost > 0;
    const rest = isLease
      ? this.#parts.calls.accounts.lease(seat.slot, now).spendAny(cost, now)
      : cost;
    if (cost > 0) this.#noteDemand(seat, now);
    this.#owe(seat.slot, rest);
    this.#parts.schedule.markDirty(seat.slot, now);
  }

  /** The store is back: what the fallback admitted is charged, and the row asks again. */
  recover(slot: number, now: InstantUs): void {
    const { table, fallback, schedule } = this.#parts;
    const at = table.at(slot);
    const lane = schedule.laneOf(slot);
    if (lane.recoveredAt > (table.cells[at + ISOLATED_AT] as number)) {
      fallback.settlePrepaid(slot, lane.outageUs, now);
    }
    table.flags[slot] = (table.flags[slot] as number) & ~FALLBACK;
    table.cells[at + ISOLATED_AT] = 0;
    if (table.cells[at + UNREPORTED] !== 0) schedule.markDue(slot);
  }

  /** Tokens of the key as this pod believes them, its own included. */
  estimate(seat: Seat, now: InstantUs): number {
    const { slot, limit, footing } = seat;
    const { cells } = this.#parts.table;
    const at = this.#parts.table.at(slot);
    const owed = (cells[at + UNREPORTED] as number) + (cells[at + IN_FLIGHT_TOKENS] as number);
    const { accounts } = this.#parts.calls;
    const own = footing === "leased" ? accounts.lease(slot, now).purse.have(now) : 0;
    return grownLevel(this.#known(seat, now), limit, now) + own - owed;
  }

  /** The last word of the store on the level of the key, by a call or in answer to a report. */
  #known({ slot, footing }: Seat, now: InstantUs): KnownLevel | undefined {
    const { accounts } = this.#parts.calls;
    const { cells } = this.#parts.table;
    const at = this.#parts.table.at(slot);
    const account = footing === "leased" ? accounts.lease(slot, now) : accounts.take(slot);
    if (cells[at + REPLIED_AT] === 0) return account.known;
    const told = { level: cells[at + LEVEL] as number, at: cells[at + HEARD_AT] as number };
    return laterWord(account.known, told);
  }

  retryAfter(seat: Seat, now: InstantUs): DurationUs {
    if (seat.trouble !== "none") return RETRY_TIMEOUT_US;
    const cost = Math.max(1, seat.check.cost);
    const lacks = Math.max(0, cost - this.estimate(seat, now));
    const toFit = Math.ceil((lacks / seat.limit.rate) * US_PER_SECOND);
    return Math.max(US_PER_MS, toFit, this.#wait(seat, cost, now));
  }

  /** How long a cost is denied without a call. */
  #wait(seat: Seat, cost: Tokens, now: InstantUs): DurationUs {
    const { calls } = this.#parts;
    if (seat.footing === "leased") {
      return calls.accounts.lease(seat.slot, now).waitBeforeAsking(seat.limit, cost, now);
    }
    return calls.accounts.take(seat.slot).waitBeforeAsking(seat.limit, cost, now);
  }

  #trouble(seat: Seat): Seat["trouble"] {
    const { calls, schedule } = this.#parts;
    if (calls.accounts.isFull) return "overloaded";
    return schedule.laneOf(seat.slot).isInDoubt ? "timeout" : "none";
  }

  #noteDemand(seat: Seat, now: InstantUs): void {
    const { calls } = this.#parts;
    if (seat.footing === "leased") {
      calls.accounts.lease(seat.slot, now).noteDemand(seat.limit, seat.check.cost, now);
    } else calls.accounts.take(seat.slot).noteDemand(seat.check.cost);
  }

  #owe(slot: number, tokens: Tokens): void {
    if (tokens === 0) return;
    const { table, schedule } = this.#parts;
    const at = table.at(slot) + UNREPORTED;
    table.cells[at] = (table.cells[at] as number) + tokens;
    schedule.markDue(slot);
  }
}
