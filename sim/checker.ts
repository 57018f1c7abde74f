/**
 * The laws that must hold after every event, whatever fails.
 *
 * - I1 admissions never exceed `b + r T` by more than the bound and what the faults so far explain
 *   (`sim/allowance.ts`): unreported consumption less the level is the virtual bucket's debt.
 * - I3, I4, I5, clock, share, count: what the traffic with the store tells, see `exchange-laws.ts`.
 * - I7 a fleet without its store admits at most the margin.
 * - report: a pod never reports more than it admitted, and has reported all of it when it leaves in
 *   good order and nothing was wrong.
 * - answer: every request at a live pod is answered, once.
 *
 * I2 and I6 belong to the leased and the exact mode. I8 (no decision depends on wall time) is a
 * comparison of two runs, see the determinism test.
 */
import type { Batch, BatchReply } from "../src/core/exchange.ts";
import type { Limit } from "../src/core/limit.ts";
import type { InstantUs, Tokens } from "../src/core/units.ts";
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
}

interface PodAccount {
  admitted: Tokens;
  reported: Tokens;
}

export class Checker implements ExchangeObserver {
  readonly violations: Violation[] = [];
  readonly #laws: ExchangeLaws;
  readonly #accounts: Map<string, PodAccount> = new Map();
  /** Admissions per limit and key since all pods are in their fallback. */
  readonly #isolated: Map<string, Tokens> = new Map();
  #nowUs: () => InstantUs = () => 0;
  #awaySinceUs: InstantUs = Number.POSITIVE_INFINITY;
  #podsFactor = 1;
  #amnesia = false;
  #disturbed = false;
  #sawExchange = false;

  constructor() {
    this.#laws = new ExchangeLaws(
      (law, text) => this.violated(law, text),
      () => this.#nowUs(),
    );
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
    const { pod, limit, key, cost, debt, allowed } = admission;
    this.#account(pod).admitted += cost;
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
  }

  /** Something other than pods coming and going has gone wrong. */
  disturbed(): void {
    this.#disturbed = true;
  }

  /** A pod left in good order. */
  left(pod: string): void {
    if (!this.#sawExchange || this.#disturbed) return;
    const { admitted, reported } = this.#account(pod);
    if (admitted === reported) return;
    this.violated("report", `pod ${pod} left with ${admitted - reported} tokens unreported`);
  }

  exchanged(pod: number, incarnation: number, batch: Batch, reply: BatchReply): void {
    this.#sawExchange = true;
    const holder = `${pod}.${incarnation}`;
    this.#laws.exchanged(holder, batch, reply);
    if (reply.duplicate) return;
    const account = this.#account(holder);
    account.reported += this.#laws.consumedIn(batch);
    if (account.reported > account.admitted + ROUNDING && !this.#amnesia) {
      const { admitted, reported } = account;
      this.violated("report", `pod ${holder} reported ${reported} of ${admitted} admitted tokens`);
    }
  }

  counted(pod: number, incarnation: number, pods: number): void {
    this.#laws.counted(`${pod}.${incarnation}`, pods);
  }

  #account(pod: string): PodAccount {
    let account = this.#accounts.get(pod);
    if (account === undefined) {
      account = { admitted: 0, reported: 0 };
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
