/**
 * What a tracked key costs in memory, beyond the string of the key itself: heap and typed arrays of
 * an engine with so many keys, less those of the same engine without any. The keys are asked for
 * once each at an even pace; in hybrid mode the rows of those that were not reconciled yet are
 * awake, and whatever room they once took is kept. In leased and exact mode each key has asked the
 * store once, and what the pod remembers of that counts as well.
 */
import { fork } from "node:child_process";
import type { Decision } from "../src/core/decision.ts";
import { defineLimit, type Limit, type Mode } from "../src/core/limit.ts";
import { PodLimiter } from "../src/core/pod-limiter.ts";
import { type InstantUs, US_PER_MS, US_PER_SECOND } from "../src/core/units.ts";
import { EmbeddedStore } from "../src/store/embedded/embedded-store.ts";

export interface MemoryCase {
  /** `sole`: one pod without a store. */
  readonly mode: "sole" | Mode;
  readonly keys: number;
}

export interface EngineMemory extends MemoryCase {
  /** Per key. */
  readonly bytes: number;
}

export const MEMORY_CASES: readonly MemoryCase[] = (
  ["sole", "hybrid", "leased", "exact"] as const
).flatMap((mode) => [100_000, 1_000_000].map((keys) => ({ mode, keys })));

export const MEMORY_ARGUMENT = "--as-engine-memory";

const LANES = 4;
/** All keys are asked for within this time; a hybrid row that is idle for 5 s is forgotten. */
const FILL_US = 4 * US_PER_SECOND;
/** Short, because no more than a thousand checks may wait for the store at one time. */
const STEP_US = 2_500;

export function measureEngineMemory(main: string, memoryCase: MemoryCase): Promise<EngineMemory> {
  const args = [MEMORY_ARGUMENT, JSON.stringify(memoryCase)];
  const child = fork(main, args, { execArgv: ["--expose-gc"] });
  return new Promise((resolve, reject) => {
    child.once("message", (bytes: number) => resolve({ ...memoryCase, bytes }));
    child.once("exit", (code) => reject(new Error(`the engine's memory: exit code ${code}`)));
  });
}

export function memoryLine({ mode, keys, bytes }: EngineMemory): string {
  return `  ${mode.padEnd(7)}${String(keys).padStart(8)} keys  ${bytes.toFixed(0)} bytes a key`;
}

/** Runs in the process that `measureEngineMemory` started. */
export function runEngineMemory(argument: string): void {
  const { mode, keys } = JSON.parse(argument) as MemoryCase;
  const names = Array.from({ length: keys }, (_, index) => `user-${index}`);
  const filled = new FilledEngine(mode, keys);
  const before = used();
  filled.fill(names);
  const bytes = used() - before;
  const tracked = filled.trackedKeys;
  if (tracked !== keys) throw new Error(`${tracked} keys are tracked, not ${keys}`);
  // A check that the store was not asked for leaves less behind.
  if (filled.admitted !== keys) throw new Error(`${filled.admitted} of ${keys} were admitted`);
  process.send?.(bytes / names.length, () => process.disconnect());
}

/** An engine with as many keys as it may have. Its store is gone when it is full. */
class FilledEngine {
  readonly #sole: boolean;
  readonly #limit: Limit;
  readonly #engine: PodLimiter;
  admitted = 0;
  #now: InstantUs = US_PER_SECOND;

  constructor(mode: MemoryCase["mode"], keysMax: number) {
    const sole = mode === "sole";
    this.#sole = sole;
    this.#limit = defineLimit({
      name: "bench",
      tokens: 10,
      spanUs: US_PER_SECOND,
      burst: 100,
      intervalUs: 100 * US_PER_MS,
      fallback: { policy: "local", margin: 0.9, maxPods: 20 },
      mode: sole ? "hybrid" : mode,
    });
    const limits = [this.#limit];
    const timeouts = { commandTimeoutUs: 50_000, decisionTimeoutUs: 10_000 };
    this.#engine = new PodLimiter(
      { limits, sole, lanes: LANES, ...timeouts, keysMax, podId: "bench" },
      this.#now,
    );
    this.#engine.membershipChanged(this.#now, { pods: 1, silent: 0 });
  }

  get trackedKeys(): number {
    return this.#engine.figures(this.#now).trackedKeys;
  }

  fill(names: readonly string[]): void {
    const store = new EmbeddedStore({ lanes: LANES });
    const perStep = Math.ceil((names.length * STEP_US) / FILL_US);
    for (let next = 0; next < names.length; this.#now += STEP_US) {
      const end = Math.min(names.length, next + perStep);
      for (; next < end; next += 1) {
        const key = names[next] as string;
        const outcome = this.#engine.decide(this.#now, [{ limit: this.#limit, key, cost: 1 }]);
        if (!("held" in outcome)) this.#count(outcome);
      }
      // A bucket without a store would be forgotten as soon as it is full again.
      if (!this.#sole) this.#reconcile(store);
    }
  }

  #count([decision]: readonly Decision[]): void {
    if (decision?.allowed === true) this.admitted += 1;
  }

  #reconcile(store: EmbeddedStore): void {
    while (this.#engine.wakeAt <= this.#now) {
      const effects = this.#engine.tick(this.#now, half);
      if (effects.length === 0) return;
      for (const effect of effects) {
        if (effect.kind === "answer") this.#count(effect.decisions);
        else if (effect.kind === "exchange") {
          const { batch } = effect;
          const reply = store.reconcile(this.#now, "bench/1", batch);
          this.#engine.replied(this.#now, batch.lane, batch.seq, reply);
        } else if (effect.kind === "call") {
          const { call } = effect;
          this.#engine.callReplied(this.#now, call.id, store.call(this.#now, call));
        }
      }
    }
  }
}

const half = (): number => 0.5;

function used(): number {
  // Buffers of what the first round found are given back by the second.
  for (let round = 0; round < 3; round += 1) globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
