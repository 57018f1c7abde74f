/**
 * Exact mode, one key of one pod: every check is decided in the store, several in one call, and a
 * denial is remembered until it could turn out otherwise.
 *
 * A call is never repeated: it may have been applied. Tokens that it took for a check which could
 * not wait any longer are a short credit for the next checks; tokens taken for a check which
 * another limit denied go back at once, with the time they were taken, so that the store can tell
 * whether the bucket has overflowed meanwhile.
 */
import { grownLevel, type KnownLevel, laterWord } from "./known-level.ts";
import type { Limit } from "./limit.ts";
import { TAKE_REPLY } from "./store-call.ts";
import { type DurationUs, type InstantUs, type Tokens, US_PER_MS, US_PER_SECOND } from "./units.ts";

/** Tokens of a late answer may be used for so long after the call was sent. */
const CREDIT_US = 50 * US_PER_MS;
/** Tokens taken longer ago are not given back: the bucket may have been full in between. */
const GIVE_BACK_US = 80 * US_PER_MS;

/** What the last denial said. */
interface Denial {
  readonly level: number;
  readonly sentAt: InstantUs;
  readonly cost: Tokens;
  readonly until: InstantUs;
}

interface GiveBack {
  readonly tokens: Tokens;
  /** Store time. */
  readonly takenAt: InstantUs;
  readonly until: InstantUs;
}

export class TakeAccount {
  #credits: { tokens: Tokens; until: InstantUs }[] = [];
  #denial: Denial | undefined;
  #known: KnownLevel | undefined;
  #demand = 0;
  #giveBack: GiveBack | undefined;

  noteDemand(cost: Tokens): void {
    this.#demand += cost;
  }

  /** Spends a cost from late answers, if they cover it. */
  spendCredit(cost: Tokens, now: InstantUs): boolean {
    this.#credits = this.#credits.filter((credit) => credit.until > now && credit.tokens > 0);
    const total = this.#credits.reduce((sum, { tokens }) => sum + tokens, 0);
    if (total < cost) return false;
    let left = cost;
    for (const credit of this.#credits) {
      const tokens = Math.min(left, credit.tokens);
      credit.tokens -= tokens;
      left -= tokens;
    }
    return true;
  }

  /** Keeps tokens that were taken for a check which is answered already. */
  addCredit(tokens: Tokens, sentAt: InstantUs): void {
    this.#credits.push({ tokens, until: sentAt + CREDIT_US });
  }

  /** Tokens to be given back with the next call; those of an earlier take join the newer ones. */
  giveBack(tokens: Tokens, takenAt: InstantUs, now: InstantUs): void {
    const waiting = this.#pendingGiveBack(now);
    this.#giveBack = {
      tokens: tokens + (waiting?.tokens ?? 0),
      // The older time: a give-back may be too old, never too young.
      takenAt: Math.min(takenAt, waiting?.takenAt ?? takenAt),
      until: now + GIVE_BACK_US,
    };
  }

  hasGiveBack(now: InstantUs): boolean {
    return this.#pendingGiveBack(now) !== undefined;
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

  /** @param told - What the answer to the last report said. */
  estimate(limit: Limit, now: InstantUs, told: KnownLevel | undefined): number {
    return grownLevel(laterWord(this.#known, told), limit, now);
  }

  /** What the next call of this key says besides its costs. */
  cut(now: InstantUs): { demand: Tokens; giveBack: Tokens; takenAt: InstantUs } {
    const back = this.#pendingGiveBack(now);
    const demand = this.#demand;
    this.#demand = 0;
    this.#giveBack = undefined;
    return { demand, giveBack: back?.tokens ?? 0, takenAt: back?.takenAt ?? 0 };
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

  #pendingGiveBack(now: InstantUs): GiveBack | undefined {
    return this.#giveBack !== undefined && this.#giveBack.until > now ? this.#giveBack : undefined;
  }
}
