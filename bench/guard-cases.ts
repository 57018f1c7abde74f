/**
 * The work of the engine that the guard counts: a fixed course of checks in virtual time, so that
 * every run on every machine does exactly the same.
 */
import type { Check } from "../src/core/decision.ts";
import type { Batch } from "../src/core/exchange.ts";
import { defineLimit, type Limit } from "../src/core/limit.ts";
import { PodLimiter } from "../src/core/pod-limiter.ts";
import { type InstantUs, US_PER_MS, US_PER_SECOND } from "../src/core/units.ts";
import { EmbeddedStore } from "../src/store/embedded/embedded-store.ts";
import { BatchCourse } from "./guard-batch.ts";

export interface GuardCase {
  readonly name: string;
  readonly mode: "sole" | "hybrid";
  /** Limits named by each check. */
  readonly limits: number;
  /** Tokens per second and burst of each key. */
  readonly tokens: number;
  /** What is counted: a check, one of a batch over HTTP, or the reconcile of a key. */
  readonly counts: "check" | "batched check" | "reconcile";
}

export const GUARD_CASES: readonly GuardCase[] = [
  { name: "sole, admitted", mode: "sole", limits: 1, tokens: 1_000_000, counts: "check" },
  { name: "sole, denied", mode: "sole", limits: 1, tokens: 1, counts: "check" },
  { name: "sole, 3 limits", mode: "sole", limits: 3, tokens: 1_000_000, counts: "check" },
  { name: "sole, HTTP batch", mode: "sole", limits: 1, tokens: 1_000_000, counts: "batched check" },
  { name: "hybrid, admitted", mode: "hybrid", limits: 1, tokens: 1_000_000, counts: "check" },
  { name: "hybrid, denied", mode: "hybrid", limits: 1, tokens: 1, counts: "check" },
  { name: "hybrid, 3 limits", mode: "hybrid", limits: 3, tokens: 1_000_000, counts: "check" },
  { name: "reconcile of a key", mode: "hybrid", limits: 1, tokens: 10, counts: "reconcile" },
];

/** Keys of a case; every one is asked for in turn. */
export const GUARD_KEYS = 1_000;
const LANES = 4;
/** Shorter than a pause between two early reconciles of a key. */
const PASS_US = US_PER_MS;
const INTERVAL_US = 100 * US_PER_MS;

export interface GuardCourse {
  /** Brings the engine to the state in which `pass` can be counted. */
  prepare(): void;
  /** `GUARD_KEYS` checks, or the reconcile of as many keys. */
  pass(): void;
}

export function guardCourse(guardCase: GuardCase): GuardCourse {
  if (guardCase.counts !== "batched check") return new EngineCourse(guardCase);
  const course = new BatchCourse(limitOf(0, guardCase.tokens), GUARD_KEYS);
  return { prepare: () => course.pass(), pass: () => course.pass() };
}

/** One engine on its course. */
class EngineCourse implements GuardCourse {
  readonly #engine: PodLimiter;
  readonly #store = new EmbeddedStore({ lanes: LANES });
  readonly #checks: readonly (readonly Check[])[];
  readonly #isReconcile: boolean;
  #now: InstantUs = US_PER_SECOND;
  #reconciled = 0;

  constructor({ mode, limits, tokens, counts }: GuardCase) {
    const configured = Array.from({ length: limits }, (_, index) => limitOf(index, tokens));
    const timeouts = { commandTimeoutUs: 50_000, decisionTimeoutUs: 10_000 };
    const keysMax = GUARD_KEYS * limits;
    const sole = mode === "sole";
    this.#engine = new PodLimiter(
      { limits: configured, sole, lanes: LANES, ...timeouts, keysMax, podId: "guard" },
      this.#now,
    );
    this.#engine.membershipChanged(this.#now, { pods: 1, silent: 0 });
    this.#isReconcile = counts === "reconcile";
    this.#checks = Array.from({ length: GUARD_KEYS }, (_, index) =>
      configured.map((limit) => ({ limit, key: `user-${index}`, cost: 1 })),
    );
  }

  prepare(): void {
    if (!this.#isReconcile) this.#ask();
    this.#settle();
    // One pass over the rows in the new interval, so that every row is on its lists.
    this.#ask();
    if (this.#isReconcile) this.#now += INTERVAL_US;
  }

  pass(): void {
    if (!this.#isReconcile) {
      this.#ask();
      return;
    }
    this.#reconciled = 0;
    this.#turn();
    if (this.#reconciled !== GUARD_KEYS) throw new Error(`reconciled ${this.#reconciled} keys`);
  }

  #ask(): void {
    for (const checks of this.#checks) this.#engine.decide(this.#now, checks);
    this.#now += PASS_US;
  }

  /** Lets everything that is due be told and answered. */
  #settle(): void {
    for (let turn = 0; turn < 3; turn += 1) {
      this.#now += INTERVAL_US;
      this.#turn();
    }
  }

  #turn(): void {
    while (this.#engine.wakeAt <= this.#now) {
      const effects = this.#engine.tick(this.#now, half);
      if (effects.length === 0) break;
      for (const effect of effects) if (effect.kind === "exchange") this.#exchange(effect.batch);
    }
  }

  #exchange(batch: Batch): void {
    const reply = this.#store.reconcile(this.#now, "guard/1", batch);
    this.#reconciled += batch.keys.length;
    this.#engine.replied(this.#now, batch.lane, batch.seq, reply);
  }
}

const half = (): number => 0.5;

function limitOf(index: number, tokens: number): Limit {
  return defineLimit({
    name: `limit-${index}`,
    tokens,
    spanUs: US_PER_SECOND,
    burst: tokens,
    intervalUs: INTERVAL_US,
    fallback: { policy: "local", margin: 0.9, maxPods: 20 },
  });
}
