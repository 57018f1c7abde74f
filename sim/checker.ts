/**
 * The laws that must hold after every event, whatever fails.
 *
 * - I1 admissions never exceed `b + r T` by more than the bound and what the faults so far explain
 *   (`sim/allowance.ts`): unreported consumption less the level is the virtual bucket's debt.
 * - I3, I4, I5, clock, share, count: what the traffic with the store tells, see `exchange-laws.ts`.
 * - I2, I6, order: what the calls of leased and exact limits tell, see `call-laws.ts`.
 * - I7 a fleet without its store admits at most the margin.
 * - report: a pod never reports more than it admitted, and has reported all of it when it leaves in
 *   good order and nothing was wrong (of hybrid limits; others are paid for before).
 * - answer: every request at a live pod is answered, once.
 *
 * I8 (no decision depends on wall time) is a comparison of two runs, see the determinism test.
 */
import type { Batch, BatchReply } from "../src/core/exchange.ts";
import type { Limit } from "../src/core/limit.ts";
import type { StoreCall, StoreCallReply } from "../src/core/store-call.ts";
import type { DurationUs, InstantUs, Tokens } from "../src/core/units.ts";
import { CallLaws } from "./call-laws.ts";
import { ExchangeLaws } from "./exchange-laws.ts";
import type { Violation } from "./run-result.ts";
import type { ExchangeObserver } from "./scheme.ts";

/** After this many of one law the rest says nothing new. */
const VIOLATIONS_MAX = 3;

/** A debt is computed in doubles from whole numbers; anything beyond is no rounding. */
const ROUNDING = 1e-6;

/** Every pod is in its fallback this long after the store went away, with slack for timers. */
const FALLBACK_ENTRY_US = 1_300_000;

/** One check of an admitted request. */
export interface Admission {
  /** Pod and incarnation. */
  readonly pod: string;
  readonly limit: Limit;
  readonly key: string;
  readonly cost: Tokens;
  /** Of the virtual bucket, after it. */
  readonly debt: Tokens;
  /** What I1 allows now. */
  readonly allowed: Tokens;
  /** Decided by the pod's fallback. */
  readonly isFallback: boolean;
}

interface PodAccount {
  admitted: Tokens;
  reported: Tokens;
  /** Admissions of hybrid limits less what was reported of them; NaN when modes change. */
  unreported: Tokens;
}

export class Checker implements ExchangeObserver {
  readonly violations: Violation[] = [];
  readonly #laws: ExchangeLaws;
  readonly #calls: CallLaws;
  readonly #accounts: Map<string, PodAccount> = new Map();
  /** Admissions per limit and key since all pods are in their fallback. */
  readonly #isolated: Map<string, Tokens> = new Map();
  #nowUs: () => InstantUs = () => 0;
  #awaySinceUs: InstantUs = Number.POSITIVE_INFINITY;
  #podsFactor = 1;
  #amnesia = false;
  #disturbed = false;
  #sawExchange = false;
  #reconfigured = false;

  constructor() {
    const violated = (law: string, text: string): void => this.violated(law, text);
    const nowUs = (): InstantUs => this.#nowUs();
    this.#laws = new ExchangeLaws(violated, nowUs);
    this.#calls = new CallLaws(violated, nowUs);
  }

  /** @param nowUs - True time. @param podsFactor - What pods make of the number of pods. */
  watch(nowUs: () => InstantUs, podsFactor: number): void {
    this.#nowUs = nowUs;
    this.#podsFactor = podsFactor;
  }

  violated(invariant: string, text: string): void {
    const times = this.violations.filter((found) => found.invariant === invariant).length;
    if (times >= VIOLATIONS_MAX) return;
    this.violations.push({ invariant, atUs: this.#nowUs(), text });
  }

  /** Stock that pods may still use, over all keys, as the traffic tells it. */
  get stockOut(): Tokens {
    return this.#laws.stockOut;
  }

  admitted(admission: Admission): void {
    const { pod, limit, key, cost, debt, allowed, isFallback } = admission;
    const account = this.#account(pod);
    account.admitted += cost;
    if (limit.mode === "hybrid") account.unreported += cost;
    else if (limit.mode === "auto") account.unreported = Number.NaN;
    else if (limit.mode === "leased" && !isFallback && !this.#reconfigured) {
      this.#calls.admitted(pod, `${limit.name} ${key}`, cost);
    }
    if (debt > allowed + ROUNDING) {
      const figures = `${debt.toFixed(1)} tokens of debt, at most ${allowed.toFixed(1)} allowed`;
      this.violated("I1", `${limit.name} ${key}: ${figures}`);
    }
    const isolatedUs = this.#nowUs() - this.#awaySinceUs - FALLBACK_ENTRY_US;
    if (isolatedUs > 0) this.#isolatedAdmission(limit, key, cost, isolatedUs);
  }

  /** The store is out of everybody's reach from now on. */
  storeAway(): void {
    this.#awaySinceUs = this.#nowUs();
    this.#isolated.clear();
  }

  storeBack(): void {
    this.#awaySinceUs = Number.POSITIVE_INFINITY;
  }

  /** The store lost state: what it had applied may rightly be applied again. */
  storeForgot(): void {
    this.#amnesia = true;
    this.#laws.storeForgot();
    this.#calls.storeForgot();
  }

  /** Pods' clocks stand still for so long. */
  clocksStandStill(forUs: DurationUs): void {
    this.#calls.unclearFor(forUs);
  }

  /** Limits change while the fleet runs: a pod may be in another mode than the limit in force. */
  reconfigured(): void {
    this.#reconfigured = true;
  }

  /** Something other than pods coming and going has gone wrong. */
  disturbed(): void {
    this.#disturbed = true;
  }

  /** A pod left in good order. */
  left(pod: string): void {
    if (!this.#sawExchange || this.#disturbed) return;
    const { unreported } = this.#account(pod);
    if (unreported === 0 || Number.isNaN(unreported)) return;
    this.violated("report", `pod ${pod} left with ${unreported} tokens unreported`);
  }

  exchanged(pod: number, incarnation: number, batch: Batch, reply: BatchReply): void {
    this.#sawExchange = true;
    const holder = `${pod}.${incarnation}`;
    this.#laws.exchanged(holder, batch, reply);
    if (reply.duplicate) return;
    const account = this.#account(holder);
    account.reported += this.#laws.consumedIn(batch);
    account.unreported -= this.#laws.consumedIn(batch, "hybrid");
    if (account.reported > account.admitted + ROUNDING && !this.#amnesia) {
      const { admitted, reported } = account;
      this.violated("report", `pod ${holder} reported ${reported} of ${admitted} admitted tokens`);
    }
  }

  called(pod: number, incarnation: number, call: StoreCall, reply: StoreCallReply): void {
    this.#laws.called(call, reply);
    this.#calls.called(`${pod}.${incarnation}`, call, reply);
  }

  counted(pod: number, incarnation: number, pods: number): void {
    this.#laws.counted(`${pod}.${incarnation}`, pods);
  }

  #account(pod: string): PodAccount {
    let account = this.#accounts.get(pod);
    if (account === undefined) {
      account = { admitted: 0, reported: 0, unreported: 0 };
      this.#accounts.set(pod, account);
    }
    return account;
  }

  /** I7: margin (b + r T), a token more for each pod's rounding. */
  #isolatedAdmission(limit: Limit, key: string, cost: Tokens, isolatedUs: number): void {
    const { margin, maxPods, policy } = limit.fallback;
    if (policy === "open") return;
    const name = `${limit.name} ${key}`;
    const admitted = (this.#isolated.get(name) ?? 0) + cost;
    this.#isolated.set(name, admitted);
    const nu = Math.max(1, 1 / this.#podsFactor);
    const whole = nu * margin * (limit.burst + (limit.rate * isolatedUs) / 1e6);
    if (admitted <= whole + Math.max(maxPods, this.#accounts.size)) return;
    this.violated(
      "I7",
      `${name}: ${admitted} tokens without the store, ${whole.toFixed(0)} allowed`,
    );
  }
}
