/**
 * Leased mode, one key of one pod: tokens that the store has handed out beforehand.
 *
 * The store never has more tokens out than the bucket lacks, and a lease is void before the store
 * forgets it, so no span of time sees more than burst plus refill: over-admission is zero. The
 * price is that a pod whose lease is short must ask, and that tokens of a crashed pod are lost
 * until their lease slot ends.
 *
 * A lease belongs to a slot of the store's time; what is spent of it and what is given back are
 * told by slot. Instants are this pod's monotonic time unless they are said to be the store's.
 */

import type { KnownLevel } from "./known-level.ts";
import { LeasePurse } from "./lease-purse.ts";
import type { Limit } from "./limit.ts";
import { LEASE, LEASE_REPLY, LEASE_US } from "./store-call.ts";
import { type DurationUs, type InstantUs, type Tokens, US_PER_MS, US_PER_SECOND } from "./units.ts";

/**
 * A lease is used for this part of its life, counted from before it was asked for: clocks drift.
 */
const USABLE_PART = 0.9;
/** Unused for this part of a lease, it is given back. */
const IDLE_PART = 0.7;
const RENEW_PART = 0.3;
const RATE_TAU_US = 500 * US_PER_MS;
const SPAN_MIN_US = 200 * US_PER_MS;
const RENEW_GAP_US = 10 * US_PER_MS;
const CYCLE_MIN_US = 10 * US_PER_MS;
/** Costs above this part of the burst do not enter the rate: refused, they would be prefetched. */
const LARGE_PART = 1 / 16;

/** What a reply said about scarcity. */
interface Block {
  readonly level: number;
  readonly sentAt: InstantUs;
  readonly until: InstantUs;
}

export interface LeaseTerms {
  readonly now: InstantUs;
  readonly pods: number;
  readonly rttUs: DurationUs;
}

/** What a call is to bring. */
export interface LeaseWish {
  /** Costs of the checks that wait. */
  readonly waiting: readonly Tokens[];
  /** Ask for nothing, only tell. */
  readonly isReport: boolean;
  /** What is told could be lost, and is told once: keep it. */
  readonly isInDoubt: boolean;
  readonly decisionTimeoutUs: DurationUs;
}

export class LeaseAccount {
  readonly purse: LeasePurse = new LeasePurse();
  #rate = 0;
  #rateAt: InstantUs = 0;
  #demand = 0;
  #ownDemand = 0;
  #repliedAt: InstantUs = 0;
  #calledAt: InstantUs = Number.NaN;
  #usedAt: InstantUs;
  #block: Block | undefined;
  #renewAt: InstantUs = Number.NEGATIVE_INFINITY;
  /** A call counts as open until then; its reply is used whenever it comes. */
  #openUntil: InstantUs = Number.NEGATIVE_INFINITY;
  #openWasBlocked = false;

  constructor(now: InstantUs) {
    this.#usedAt = now;
    this.#rateAt = now;
  }

  /** Spends what there is of a cost that was admitted elsewhere. @returns What there was not. */
  spendAny(cost: Tokens, now: InstantUs): Tokens {
    const covered = Math.min(cost, this.purse.have(now));
    if (covered > 0) this.purse.spend(covered);
    return cost - covered;
  }

  /** Takes note of demand, admitted or not, once a check. */
  noteDemand(limit: Limit, cost: Tokens, now: InstantUs): void {
    this.#usedAt = now;
    if (cost > Math.max(1, limit.burst * LARGE_PART)) return;
    this.#demand += cost;
    const tau = RATE_TAU_US / US_PER_SECOND;
    this.#rate = this.rate(now) + cost / tau;
    this.#rateAt = now;
  }

  /** Decayed demand, tokens per second. */
  rate(now: InstantUs): number {
    return this.#rate * Math.exp(-Math.max(0, now - this.#rateAt) / RATE_TAU_US);
  }

  /** Whether the lease has run low and may be renewed before it is empty. */
  shouldRenew(limit: Limit, terms: LeaseTerms): boolean {
    const { now } = terms;
    if (this.isOpen(now) || now < this.#renewAt) return false;
    const target = this.#target(limit, terms);
    const have = this.purse.have(now);
    return target === 1 ? have === 0 : have < RENEW_PART * target;
  }

  /** Whether a scarce key should be asked for again now that its ticket has come. */
  shouldAskAgain(limit: Limit, terms: LeaseTerms): boolean {
    return this.rate(terms.now) * this.#span(limit, terms) >= 2 && this.shouldRenew(limit, terms);
  }

  isOpen(now: InstantUs): boolean {
    return now < this.#openUntil;
  }

  /**
   * How long a check that the lease does not cover would have to wait before asking makes sense; 0
   * when it should ask now.
   */
  waitBeforeAsking(limit: Limit, cost: Tokens, now: InstantUs): DurationUs {
    if (this.#block !== undefined) {
      const { sentAt, level, until } = this.#block;
      const grown = level + (limit.rate * (now - sentAt)) / US_PER_SECOND + this.purse.have(now);
      if (cost > grown) return Math.ceil(((cost - grown) / limit.rate) * US_PER_SECOND);
      if (now < until) return until - now;
    }
    return this.isOpen(now) && this.#openWasBlocked ? RENEW_GAP_US : 0;
  }

  /** What the last reply said of the level. */
  get known(): KnownLevel | undefined {
    return this.#block ? { level: this.#block.level, at: this.#block.sentAt } : this.#known;
  }

  /** Something to tell: tokens to give back, or enough spent to matter to the level. */
  hasReport(limit: Limit, terms: LeaseTerms): boolean {
    const { now, pods } = terms;
    this.purse.expire(now);
    if (now - this.#usedAt > IDLE_PART * LEASE_US) this.purse.returnAll();
    return this.purse.returned > 0 || this.purse.spent > limit.burst / (4 * pods);
  }

  /**
   * Words the next call of this key.
   *
   * @returns The fixed fields behind the common ones, and the reports by slot.
   */
  cut(
    limit: Limit,
    terms: LeaseTerms,
    { waiting, isReport, isInDoubt, decisionTimeoutUs }: LeaseWish,
  ): { fields: Map<number, number>; reports: [number, Tokens, Tokens][] } {
    const { now } = terms;
    let have = this.purse.have(now);
    const total = waiting.reduce((all, cost) => all + cost, 0);
    const unit = waiting.length === 0 ? 0 : Math.min(...waiting);
    if (unit > have && have > 0) {
      // Nobody hoards what is too little for the next check.
      this.purse.returnAll();
      have = 0;
    }
    const need = isReport ? 0 : Math.min(limit.burst, Math.max(0, total - have));
    const wish = Math.max(this.#target(limit, terms) - have, need);
    const want = isReport ? 0 : Math.max(0, Math.min(limit.burst, wish));
    const cycleUs = this.#cycle(limit);
    const fields = new Map<number, number>([
      [LEASE.demand, this.#demand],
      [LEASE.need, need],
      [LEASE.unit, unit],
      [LEASE.want, want],
      [LEASE.elapsedSeconds, this.#elapsedSeconds(now)],
      [LEASE.ownDemand, this.#ownDemand],
      [LEASE.repliedAt, this.#repliedAt],
      [LEASE.cycleSeconds, cycleUs / US_PER_SECOND],
      [LEASE.low, (limit.rate * cycleUs) / US_PER_SECOND + 1],
    ]);
    const reports = isInDoubt ? [] : this.purse.takeReports();
    this.#demand = 0;
    this.#calledAt = now;
    if (!isReport) {
      this.#openUntil = now + decisionTimeoutUs;
      this.#openWasBlocked = this.#block !== undefined;
    }
    return { fields, reports };
  }

  /** The reply to a call that was sent at `sentAt`. @returns When to look at the key again. */
  replied(
    entries: Float64Array,
    base: number,
    when: { now: InstantUs; sentAt: InstantUs; storeNow: InstantUs; isReport: boolean },
  ): InstantUs {
    const { now, sentAt, storeNow } = when;
    const granted = entries[base + LEASE_REPLY.granted] as number;
    const slot = entries[base + LEASE_REPLY.slot] as number;
    const level = entries[base + LEASE_REPLY.level] as number;
    const retryAt = entries[base + LEASE_REPLY.retryAt] as number;
    this.#ownDemand = entries[base + LEASE_REPLY.ownDemand] as number;
    this.#repliedAt = storeNow;
    if (granted > 0) this.purse.add(slot, granted, sentAt + USABLE_PART * LEASE_US, now);
    if (when.isReport) return Number.POSITIVE_INFINITY;
    this.#openUntil = Number.NEGATIVE_INFINITY;
    if (retryAt > 0) {
      const until = now + Math.max(0, retryAt - storeNow);
      this.#block = { level, sentAt, until };
      this.#renewAt = until;
      return until;
    }
    this.#block = undefined;
    this.#known = { level, at: now };
    this.#renewAt = now + RENEW_GAP_US;
    return Number.POSITIVE_INFINITY;
  }

  #known: KnownLevel | undefined;

  /** The key is scarce: checks that are not covered wait for their ticket. */
  get isBlocked(): boolean {
    return this.#block !== undefined;
  }

  /** Tokens to hold: enough for the time until the next renewal, none for a trickle. */
  #target(limit: Limit, terms: LeaseTerms): Tokens {
    const rate = this.rate(terms.now);
    const target = Math.floor(rate * this.#span(limit, terms));
    if (target >= 2) return target;
    return rate >= 2 && limit.burst >= 5 * terms.pods ? 1 : 0;
  }

  /** Seconds that a lease should last. */
  #span(limit: Limit, terms: LeaseTerms): number {
    return Math.max(2 * (limit.intervalUs + terms.rttUs), SPAN_MIN_US) / US_PER_SECOND;
  }

  #cycle(limit: Limit): DurationUs {
    const quarterUs = (limit.burst / (4 * limit.rate)) * US_PER_SECOND;
    return Math.max(CYCLE_MIN_US, Math.min(quarterUs, limit.intervalUs / 2));
  }

  #elapsedSeconds(now: InstantUs): number {
    return Number.isNaN(this.#calledAt) ? -1 : Math.max(0, now - this.#calledAt) / US_PER_SECOND;
  }
}
