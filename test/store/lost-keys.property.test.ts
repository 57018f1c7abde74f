/**
 * A key that is gone without anybody having taken it is never taken for a lost one, whatever pods
 * do that were told different levels at different times, under two versions of a limit.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Batch, FAULT, REPLY } from "../../src/core/exchange.ts";
import { fullAfter, NO_FULL_AT } from "../../src/core/full-at.ts";
import type { Limit } from "../../src/core/limit.ts";
import { LEASE_REPLY, TAKE_REPLY } from "../../src/core/store-call.ts";
import { EmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { callOf, leases, takes } from "./asking.ts";
import { batchOf, limitOf, MS, SECOND } from "./pod.ts";

/** By the pod: the first two go by one version of the limit, the last by the other. */
const VERSIONS: readonly (readonly [Limit, Limit, Limit])[] = [
  [
    { tokens: 5, spanUs: 900 * SECOND, burst: 5 },
    { tokens: 1, burst: 50 },
  ],
  [
    { tokens: 1, burst: 30 },
    { tokens: 1, spanUs: 10 * SECOND, burst: 20 },
  ],
  [
    { tokens: 100, burst: 1_000 },
    { tokens: 100, burst: 1_000 },
  ],
].map(([one, other]) => {
  const [first, last] = [limitOf({ name: "k", ...one }), limitOf({ name: "k", ...other })];
  return [first, first, last];
});

const pass = fc.record({
  op: fc.constant("pass" as const),
  us: fc.oneof(
    fc.constantFrom(0, 1, 100 * MS, SECOND, 10 * SECOND, 11 * SECOND, 75 * SECOND),
    fc.nat(1_000 * SECOND),
  ),
});
const pod = fc.nat(2);
const say = fc.record({
  op: fc.constantFrom("report" as const, "take" as const, "lease" as const),
  pod,
  tokens: fc.oneof(fc.nat(10), fc.constantFrom(50, 1_000)),
  /** Refunded, given back, or returned. */
  back: fc.oneof(fc.constant(0), fc.nat(50)),
  stock: fc.nat(3),
  hold: fc.constantFrom(0, 0, 0.3),
});
const steps = fc.array(fc.oneof({ weight: 1, arbitrary: pass }, { weight: 2, arbitrary: say }), {
  minLength: 5,
  maxLength: 60,
});
type Say = Exclude<typeof steps extends fc.Arbitrary<(infer T)[]> ? T : never, { op: "pass" }>;

/** Three pods and one key of a store, each pod with what it was told last. */
class Pods {
  readonly store = new EmbeddedStore();
  readonly #limits: readonly [Limit, Limit, Limit];
  nowUs = 1_700_000_000 * SECOND;
  readonly fullAt: number[] = [NO_FULL_AT, NO_FULL_AT, NO_FULL_AT];
  #epoch = 0;
  #seq = 0;

  constructor(limits: readonly [Limit, Limit, Limit]) {
    this.#limits = limits;
  }

  limit(index: number): Limit {
    return this.#limits[index] as Limit;
  }

  /** Says something. @returns The fault that the reply told. */
  say({ op, pod: index, tokens, back, stock, hold }: Say): number {
    const limit = this.limit(index);
    const fullAt = this.fullAt[index] as number;
    const known = { hold, epoch: this.#epoch };
    if (op === "report") {
      this.#seq += 1;
      const fields = { consumed: tokens - back, held: stock, demand: tokens, fullAt };
      const entry = { ...fields, repliedAt: this.nowUs };
      const rest: Partial<Batch> = { seq: this.#seq, ...known };
      const batch = batchOf([{ limit, key: "k", fields: entry }], rest);
      const { epoch, entries } = this.store.reconcile(this.nowUs, "pods", batch);
      return this.#heard(index, epoch, entries[REPLY.level], entries[REPLY.fault]);
    }
    const slot = Math.floor(this.nowUs / (500 * MS)) + 2;
    const body =
      op === "take"
        ? takes([
            {
              limit,
              key: "k",
              fields: { giveBack: back, takenAt: this.nowUs - MS, runs: [[1, tokens]], fullAt },
            },
          ])
        : leases([
            {
              limit,
              key: "k",
              fields: { need: tokens, want: tokens, reports: [[slot, 0, back]], fullAt },
            },
          ]);
    const { epoch, entries } = this.store.call(this.nowUs, callOf(body, known));
    const { level, fault } = op === "take" ? TAKE_REPLY : LEASE_REPLY;
    return this.#heard(index, epoch, entries[level], entries[fault]);
  }

  #heard(index: number, epoch: number, level = 0, fault = 0): number {
    this.#epoch = epoch;
    this.fullAt[index] = fullAfter(this.limit(index), level, this.nowUs);
    return fault;
  }
}

describe("a key that is gone", () => {
  it("was not lost when it has only expired", () => {
    fc.assert(
      fc.property(fc.constantFrom(...VERSIONS), steps, (limits, sequence) => {
        const pods = new Pods(limits);
        for (const step of sequence) {
          if (step.op === "pass") pods.nowUs += step.us;
          else expect(pods.say(step)).toBe(FAULT.none);
        }
      }),
      { numRuns: 1_500 },
    );
  });

  it("was lost when somebody has taken it while a pod knows better", () => {
    fc.assert(
      fc.property(fc.constantFrom(...VERSIONS), steps, pod, (limits, sequence, index) => {
        const pods = new Pods(limits);
        for (const step of sequence) {
          if (step.op === "pass") pods.nowUs += step.us;
          else pods.say(step);
        }
        pods.store.dropKey("k", "k");
        const isKnown = pods.nowUs < (pods.fullAt[index] as number);
        const rest = { pod: index, tokens: 0, back: 0, stock: 0, hold: 0 } as const;
        expect(pods.say({ op: "report", ...rest })).toBe(isKnown ? FAULT.lost : FAULT.none);
      }),
      { numRuns: 300 },
    );
  });
});
