/**
 * Exact mode, one key of one pod: every check is decided in the store, several in one call, and a
 * denial is remembered until it could turn out otherwise.
 *
 * A call is never repeated: it may have been applied. Tokens that it took for a check which could
 * not wait any longer are a short credit for the next checks. What is left of a credit, and what
 * was taken for a check that another limit denied, goes back with the time it was taken, so that
 * the store can tell what the bucket would have lost meanwhile. It is given back once: a call that
 * fails may have been applied, and a second one would mint.
 */
import type { KnownLevel } from "./known-level.ts";
import type { Limit } from "./limit.ts";
import { TAKE_REPLY } from "./store-call.ts";
import { type DurationUs, type InstantUs, type Tokens, US_PER_MS, US_PER_SECOND } from "./units.ts";

/** Tokens of a late answer may be used for so long after the call was sent. */
export const CREDIT_US: DurationUs = 50 * US_PER_MS;
/** What the last denial said. */
interface Denial {
  readonly level: number;
  readonly sentAt: InstantUs;
  readonly cost: Tokens;
  readonly until: InstantUs;
}

/** When the store took tokens. */
export interface Taken {
  /** Store time, and the epoch it is of. */
  readonly at: InstantUs;
  readonly epoch: number;
  /** When its answer came, by this pod's clock: they were taken no later. */
  readonly heardAt: InstantUs;
}

interface Credit {
  tokens: Tokens;
  readonly taken: Taken;
  readonly until: InstantUs;
}

/** Tokens taken out of credits for one check, so that they can be put back. */
export type CreditSpend = readonly { readonly credit: Credit; readonly tokens: Tokens }[];

/** When and to whom a call tells something. */
export interface TakeTelling {
  readonly now: InstantUs;
  readonly epoch: number;
  /** What is given back could be lost, and is given back once: keep it. */
  readonly isInDoubt: boolean;
}

export class TakeAccount {
  #credits: Credit[] = [];
  #denial: Denial | undefined;
  #known: KnownLevel | undefined;
  #demand = 0;
  /** To be given back; `taken` is of the oldest take. */
  #back: { readonly tokens: Tokens; readonly taken: Taken } | undefined;
  /** When somebody will look after what is owed. */
  lookAt: InstantUs = Number.POSITIVE_INFINITY;

  noteDemand(cost: Tokens): void {
    this.#demand += cost;
  }

  /** Spends a cost from late answers, if they cover it. */
  spendCredit(cost: Tokens, now: InstantUs): CreditSpend | undefined {
    if (this.#credits.length === 0) return undefined;
    this.#expire(now);
    const total = this.#credits.reduce((sum, { tokens }) => sum + tokens, 0);
    if (total < cost) return undefined;
    const spend: { credit: Credit; tokens: Tokens }[] = [];
    let left = cost;
    for (const credit of this.#credits) {
      const tokens = Math.min(left, credit.tokens);
      if (tokens === 0) continue;
      credit.tokens -= tokens;
      left -= tokens;
      spend.push({ credit, tokens });
    }
    return spend;
  }

  /** Undoes `spendCredit` of the same instant. */
  unspendCredit(spend: CreditSpend): void {
    for (const { credit, tokens } of spend) {
      credit.tokens += tokens;
      if (!this.#credits.includes(credit)) this.#credits.push(credit);
    }
  }

  /** Keeps tokens that were taken for a check which is answered already. */
  addCredit(tokens: Tokens, taken: Taken, sentAt: InstantUs): void {
    this.#credits.push({ tokens, taken, until: sentAt + CREDIT_US });
  }

  /** Tokens to be given back with the next call; those of an earlier take join the newer ones. */
  giveBack(tokens: Tokens, taken: Taken): void {
    const waiting = this.#back?.taken.epoch === taken.epoch ? this.#back : undefined;
    this.#back = {
      tokens: tokens + (waiting?.tokens ?? 0),
      // The older time: all of them lose what has refilled since, once, as the older ones would.
      taken: waiting !== undefined && waiting.taken.at < taken.at ? waiting.taken : taken,
    };
  }

  /** There are credits, or something is to be given back. */
  get isOwing(): boolean {
    return this.#credits.length > 0 || this.#back !== undefined;
  }

  /** No credit is to be used any more. */
  endCredits(): void {
    this.#expire(Number.POSITIVE_INFINITY);
  }

  /**
   * Whether something is to be given back that is worth a call of its own: the store does not
   * credit what has refilled since the take, but where the bucket is under pressure, and then there
   * are other calls to go with.
   */
  hasGiveBack(limit: Limit, now: InstantUs): boolean {
    this.#expire(now);
    if (this.#back === undefined) return false;
    const { tokens, taken } = this.#back;
    const ticks = Math.floor(Math.max(0, now - taken.heardAt) / limit.tickUs);
    if (now - taken.heardAt <= CREDIT_US || tokens * limit.period > ticks * limit.refill)
      return true;
    this.#back = undefined;
    return false;
  }

  /**
   * How long a check of this cost is denied without a call; 0 when it should ask. A cost that
   * cannot fit yet waits until it can, one that was denied waits for its ticket, a smaller one
   * asks.
   */
  waitBeforeAsking(limit: Limit, cost: Tokens, now: InstantUs): DurationUs {
    if (this.#denial === undefined) return 0;
    const { level, sentAt, until } = this.#denial;
    const grown = level + (limit.rate * (now - sentAt)) / US_PER_SECOND;
    if (cost > grown) {
      const toFit = Math.ceil(((cost - grown) / limit.rate) * US_PER_SECOND);
      return cost >= this.#denial.cost ? Math.max(toFit, until - now) : toFit;
    }
    return cost >= this.#denial.cost && now < until ? until - now : 0;
  }

  /** What the last reply said of the level. */
  get known(): KnownLevel | undefined {
    return this.#known;
  }

  /**
   * What the next call of this key says besides its costs. What was taken in another epoch of the
   * store is not given back: its bucket may not lack it.
   */
  cut(
    limit: Limit,
    { now, epoch, isInDoubt }: TakeTelling,
  ): { demand: Tokens; giveBack: Tokens; takenAt: InstantUs } {
    const demand = this.#demand;
    this.#demand = 0;
    const back = this.hasGiveBack(limit, now) ? this.#back : undefined;
    if (back === undefined || isInDoubt) return { demand, giveBack: 0, takenAt: 0 };
    this.#back = undefined;
    if (back.taken.epoch !== epoch) return { demand, giveBack: 0, takenAt: 0 };
    return { demand, giveBack: back.tokens, takenAt: back.taken.at };
  }

  replied(
    entries: Float64Array,
    base: number,
    when: { now: InstantUs; sentAt: InstantUs; storeNow: InstantUs },
  ): void {
    const { now, sentAt, storeNow } = when;
    const level = entries[base + TAKE_REPLY.level] as number;
    const cost = entries[base + TAKE_REPLY.deniedCost] as number;
    const retryAt = entries[base + TAKE_REPLY.retryAt] as number;
    this.#known = { level, at: now };
    this.#denial =
      cost > 0 ? { level, sentAt, cost, until: now + Math.max(0, retryAt - storeNow) } : undefined;
  }

  /** Credits that have run out are given back. */
  #expire(now: InstantUs): void {
    const credits = this.#credits;
    if (credits.length === 0) return;
    this.#credits = credits.filter(({ until, tokens }) => until > now && tokens > 0);
    for (const { until, tokens, taken } of credits) {
      if (until <= now && tokens > 0) this.giveBack(tokens, taken);
    }
  }
}
