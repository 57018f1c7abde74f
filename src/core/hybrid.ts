/**
 * Hybrid mode, the pod's side of a decision: what may be spent now, and what the pod believes about
 * the level in the store. Pure row arithmetic; who is asked and when is the engine's business.
 * A row is told by where its cells begin (`BucketTable.at`), which a check looks up once.
 */
import type { BucketTable } from "./bucket-table.ts";
import { USED_AT } from "./bucket-table.ts";
import {
  ASKED_AT,
  AVAILABLE,
  COLD,
  CREDIT,
  CUT_AT,
  DEMAND,
  FLOW,
  FLOW_AT,
  FLOW_MAX,
  FLOW_RATE,
  HEARD_AT,
  IN_FLIGHT_TOKENS,
  RELEASED,
  REPLIED_AT,
  SHARE,
  SPENT,
  STOCK,
  STOCK_US,
  TRIGGERED_AT,
  UNREPORTED,
  WANT,
  WANT_AT,
} from "./hybrid-row.ts";
import type { Limit } from "./limit.ts";
import { type DurationUs, type InstantUs, type Tokens, US_PER_MS, US_PER_SECOND } from "./units.ts";

/** Part of the burst that pods which were never told about a key may hold between them. */
const COLD_PART = 0.1;
/** The same in time: never more than this many seconds of the rate. */
const COLD_SECONDS = 2;
/** Stock is void a little before the store's ledger forgets it. */
const STOCK_SAFETY = 0.98;
/** Flow is a double; a token that is short by this much is there. */
const FLOW_SLACK = 1e-9;
/** A held check must find this part of the burst beyond its cost, or overload would ask always. */
const ASK_MARGIN = 0.05;
/** From this share on nobody else spends enough for the estimate to be wrong. */
const LONE_SHARE = 0.9;
/** A cost above this part of the burst is no demand: refused once, it would take all shares. */
const DEMAND_PART = 1 / 8;
/** Two early reconciles of one key are at least this far apart. */
export const TRIGGER_GAP_US: DurationUs = 10 * US_PER_MS;
const RETRY_MIN_US: DurationUs = US_PER_MS;

/** Tokens that all pods together may hold of a key that the store has not told them about. */
export function coldTokens(limit: Limit): number {
  return Math.min(COLD_PART * limit.burst, COLD_SECONDS * limit.rate);
}

/** Whether tokens asked for count as demand. */
export function isDemand(limit: Limit, cost: Tokens): boolean {
  return cost <= Math.max(1, limit.burst * DEMAND_PART);
}

export class HybridBuckets {
  readonly #table: BucketTable;

  constructor(table: BucketTable) {
    this.#table = table;
  }

  /**
   * Fills a fresh row: the equal share, no flow yet, and the cold part of the burst.
   *
   * @param cold - Whole tokens to start with.
   */
  open(at: number, limit: Limit, pods: number, cold: Tokens, now: InstantUs): void {
    const { cells } = this.#table;
    const rate = limit.rate / pods;
    cells[at + FLOW_AT] = now;
    cells[at + FLOW_RATE] = rate;
    cells[at + FLOW_MAX] = flowMax(limit, rate);
    cells[at + STOCK] = cold;
    cells[at + COLD] = cold;
    cells[at + CREDIT] = cold;
    cells[at + SHARE] = 1 / pods;
    cells[at + ASKED_AT] = now;
    cells[at + AVAILABLE] = limit.burst;
    cells[at + HEARD_AT] = now;
    cells[at + CUT_AT] = now;
    cells[at + TRIGGERED_AT] = Number.NEGATIVE_INFINITY;
  }

  /**
   * Brings flow and stock to `now`. An instant before the last one changes nothing.
   *
   * @param flowRate - The rate to refill with, tokens per second.
   */
  touch(at: number, now: InstantUs, flowRate: number): void {
    const { cells } = this.#table;
    cells[at + USED_AT] = Math.max(now, cells[at + USED_AT] as number);
    const elapsed = now - (cells[at + FLOW_AT] as number);
    if (elapsed > 0) {
      const flow = (cells[at + FLOW] as number) + (flowRate * elapsed) / US_PER_SECOND;
      cells[at + FLOW] = Math.min(cells[at + FLOW_MAX] as number, flow);
      cells[at + FLOW_AT] = now;
    }
    const stock = cells[at + STOCK] as number;
    const cold = cells[at + COLD] as number;
    if (stock <= cold || !this.#answered(at)) return;
    const age = now - (cells[at + ASKED_AT] as number);
    if (age > STOCK_SAFETY * (cells[at + STOCK_US] as number)) {
      cells[at + RELEASED] = (cells[at + RELEASED] as number) + stock - cold;
      cells[at + STOCK] = cold;
    }
  }

  flowRate(at: number): number {
    return this.#table.cells[at + FLOW_RATE] as number;
  }

  /** Tokens that can be spent at once. The row must have been touched. */
  spendable(at: number): number {
    return (this.#table.cells[at + FLOW] as number) + (this.#table.cells[at + STOCK] as number);
  }

  covers(at: number, cost: Tokens): boolean {
    return this.spendable(at) + FLOW_SLACK >= cost;
  }

  /**
   * Spends a cost that is covered, flow first; stock leaves in whole tokens only, so that the
   * ledger stays in whole tokens.
   *
   * @returns The tokens taken from stock, for `untake`.
   */
  take(at: number, cost: Tokens): Tokens {
    const { cells } = this.#table;
    const flow = cells[at + FLOW] as number;
    const fromStock = Math.max(0, Math.ceil(cost - flow - FLOW_SLACK));
    cells[at + FLOW] = Math.max(0, flow - (cost - fromStock));
    cells[at + STOCK] = (cells[at + STOCK] as number) - fromStock;
    cells[at + SPENT] = (cells[at + SPENT] as number) + fromStock;
    cells[at + UNREPORTED] = (cells[at + UNREPORTED] as number) + cost;
    return fromStock;
  }

  /** Undoes a `take` of the same call. */
  untake(at: number, cost: Tokens, fromStock: Tokens): void {
    const { cells } = this.#table;
    cells[at + FLOW] = (cells[at + FLOW] as number) + cost - fromStock;
    cells[at + STOCK] = (cells[at + STOCK] as number) + fromStock;
    cells[at + SPENT] = (cells[at + SPENT] as number) - fromStock;
    cells[at + UNREPORTED] = (cells[at + UNREPORTED] as number) - cost;
  }

  /**
   * Spends what there is of a cost that was admitted elsewhere; the rest becomes debt by report. A
   * refund, a cost below 0, is all rest.
   */
  takeAnyway(at: number, cost: Tokens): void {
    const covered = Math.max(0, Math.min(cost, Math.floor(this.spendable(at) + FLOW_SLACK)));
    if (covered > 0) this.take(at, covered);
    const { cells } = this.#table;
    cells[at + UNREPORTED] = (cells[at + UNREPORTED] as number) + cost - covered;
  }

  addDemand(at: number, limit: Limit, cost: Tokens): void {
    if (!isDemand(limit, cost)) return;
    const { cells } = this.#table;
    cells[at + DEMAND] = (cells[at + DEMAND] as number) + cost;
  }

  /** Notes that a cost was refused, so that the next reconcile asks for it. */
  noteRefused(at: number, cost: Tokens, now: InstantUs): void {
    const { cells } = this.#table;
    cells[at + WANT] = Math.max(cost, cells[at + WANT] as number);
    cells[at + WANT_AT] = now;
  }

  /** Forgets a refused cost once as much was admitted. */
  noteAdmitted(at: number, cost: Tokens): void {
    const { cells } = this.#table;
    if (cost >= (cells[at + WANT] as number)) cells[at + WANT] = 0;
  }

  /** Whether what the pod knows of the key is too old to judge by. */
  isStale(at: number, limit: Limit, now: InstantUs): boolean {
    const age = now - (this.#table.cells[at + ASKED_AT] as number);
    return !this.#answered(at) || age > 3 * limit.intervalUs;
  }

  /** Whether the store would probably grant a cost that the pod cannot cover by itself. */
  isWorthAsking(at: number, limit: Limit, cost: Tokens, now: InstantUs): boolean {
    if (this.isStale(at, limit, now)) return true;
    return this.estimate(at, limit, now) >= cost + this.#askMargin(at, limit);
  }

  /** Stock ran low after a grant: time for an early reconcile. */
  isLow(at: number): boolean {
    const credit = this.#table.cells[at + CREDIT] as number;
    return credit >= 2 && (this.#table.cells[at + STOCK] as number) < credit / 4;
  }

  /** Tokens of the global limit that this pod believes are left, not below what it could spend. */
  estimate(at: number, limit: Limit, now: InstantUs): number {
    const { cells } = this.#table;
    const ageSeconds = Math.max(0, now - (cells[at + HEARD_AT] as number)) / US_PER_SECOND;
    const grown =
      (cells[at + AVAILABLE] as number) + (cells[at + FLOW_RATE] as number) * ageSeconds;
    return (
      Math.min(limit.burst, grown) -
      (cells[at + UNREPORTED] as number) -
      (cells[at + IN_FLIGHT_TOKENS] as number)
    );
  }

  /**
   * An estimate of the wait after which the same cost could pass: when flow alone covers it, or
   * when the store could be asked with success, whichever comes first.
   *
   * @param estimate - As told at `now`.
   */
  retryAfter(at: number, limit: Limit, cost: Tokens, estimate: number, now: InstantUs): DurationUs {
    const { cells } = this.#table;
    if (!this.#answered(at)) return TRIGGER_GAP_US;
    const rate = cells[at + FLOW_RATE] as number;
    const stock = cells[at + STOCK] as number;
    const reachable = cost - stock <= (cells[at + FLOW_MAX] as number);
    const byFlow = reachable ? (cost - this.spendable(at)) / rate : Number.POSITIVE_INFINITY;
    const ageSeconds = (now - (cells[at + ASKED_AT] as number)) / US_PER_SECOND;
    const byAsking = Math.min(
      (cost + this.#askMargin(at, limit) - estimate) / rate,
      Math.max((cost - estimate) / limit.rate, (3 * limit.intervalUs) / US_PER_SECOND - ageSeconds),
    );
    const seconds = Math.min(byFlow, byAsking);
    return Math.max(RETRY_MIN_US, Math.ceil(seconds * US_PER_SECOND));
  }

  /** Puts the row under changed numbers: the rate is scaled, and stock when the burst shrinks. */
  relimit(at: number, from: Limit, to: Limit, now: InstantUs): void {
    if (isSameInRow(from, to)) return;
    const { cells } = this.#table;
    this.touch(at, now, this.flowRate(at));
    const rate = ((cells[at + FLOW_RATE] as number) * to.rate) / from.rate;
    cells[at + FLOW_RATE] = rate;
    cells[at + FLOW_MAX] = flowMax(to, rate);
    cells[at + FLOW] = Math.min(cells[at + FLOW] as number, cells[at + FLOW_MAX] as number);
    const ratio = to.burst / from.burst;
    cells[at + AVAILABLE] = (cells[at + AVAILABLE] as number) * ratio;
    cells[at + COLD] = Math.floor((cells[at + COLD] as number) * Math.min(1, ratio));
    const stock = cells[at + STOCK] as number;
    const kept = Math.floor(stock * Math.min(1, ratio));
    cells[at + RELEASED] = (cells[at + RELEASED] as number) + stock - kept;
    cells[at + STOCK] = kept;
  }

  /** Gives all stock back with the next report. */
  release(at: number): void {
    const { cells } = this.#table;
    cells[at + RELEASED] = (cells[at + RELEASED] as number) + (cells[at + STOCK] as number);
    cells[at + STOCK] = 0;
  }

  #askMargin(at: number, limit: Limit): number {
    const isLone = (this.#table.cells[at + SHARE] as number) >= LONE_SHARE;
    return isLone ? 0 : ASK_MARGIN * limit.burst;
  }

  #answered(at: number): boolean {
    return this.#table.cells[at + REPLIED_AT] !== 0;
  }
}

/** Whether a row holds the same numbers under both limits. */
export function isSameInRow(from: Limit, to: Limit): boolean {
  return from.rate === to.rate && from.burst === to.burst && from.intervalUs === to.intervalUs;
}

/** Most flow a pod may gather: one interval of its rate, but always a whole token. */
export function flowMax(limit: Limit, rate: number): number {
  return Math.max(1, (rate * limit.intervalUs) / US_PER_SECOND);
}
