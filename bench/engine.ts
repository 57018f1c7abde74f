/**
 * Checks per second of the engine alone, in one process of its own per row: a pod runs one mode,
 * and the compiler of a process that has run both knows less about either.
 *
 * The engine's clock is the processor time of its process, read once in 256 checks. So neighbours
 * on the machine count for nothing: neither for what a check costs, nor for how many checks there
 * are to one reconcile. In hybrid mode the embedded store stands for Redis and answers every
 * batch at once; the time spent inside it is not the engine's, and its clock stands still
 * meanwhile. Each check brings a new key string and new objects, as a request does, and making them
 * counts. Told are checks per second with everything the engine does, and without its ticks and
 * replies: in hybrid mode with many keys nearly every check brings a reconcile with it.
 */
import { fork } from "node:child_process";
import { Prng } from "../sim/prng.ts";
import type { Check } from "../src/core/decision.ts";
import type { Batch } from "../src/core/exchange.ts";
import { defineLimit, type Limit } from "../src/core/limit.ts";
import { PodLimiter } from "../src/core/pod-limiter.ts";
import { type DurationUs, type InstantUs, US_PER_SECOND } from "../src/core/units.ts";
import { EmbeddedStore } from "../src/store/embedded/embedded-store.ts";
import { type KeyAccess, keyOrder } from "./key-order.ts";
import type { BenchSetup } from "./setup.ts";

export interface EngineCase {
  readonly mode: "sole" | "hybrid";
  /** Keys that are asked for; when they are cold, the most that are tracked. */
  readonly keys: number;
  /** Limits named by each check. */
  readonly limits: 1 | 3;
  readonly access: KeyAccess;
}

export interface EngineRounds {
  readonly perSecond: readonly number[];
  /** The same without the time for ticks and replies. */
  readonly decidingPerSecond: readonly number[];
  /** Part of the checks that were admitted. */
  readonly admitted: number;
  /** Rows of the engine at the end, a row for each limit and key. */
  readonly tracked: number;
}

export const ENGINE_CASES: readonly EngineCase[] = (["sole", "hybrid"] as const).flatMap((mode) => [
  ...[1_000, 10_000, 100_000].flatMap((keys) =>
    ([1, 3] as const).map((limits) => ({ mode, keys, limits, access: "even" as const })),
  ),
  { mode, keys: 1_000_000, limits: 1, access: "even" },
  { mode, keys: 100_000, limits: 1, access: "hot" },
  { mode, keys: 100_000, limits: 1, access: "cold" },
]);

export const ENGINE_ARGUMENT = "--as-engine";

/** Checks between two readings of the clock. */
const STRIDE = 256;
const SEED = 20_260_101;

/** Measures one case in a new process, on the core of a server. */
export function measureEngine(
  engineCase: EngineCase,
  { main, rounds, serverCommand: command }: BenchSetup,
): Promise<EngineRounds> {
  const [execPath, ...execArgv] = command === undefined ? [] : [...command, process.execPath];
  const pinned = execPath === undefined ? {} : { execPath, execArgv };
  const args = [ENGINE_ARGUMENT, JSON.stringify({ engineCase, rounds })];
  const child = fork(main, args, pinned);
  return new Promise((resolve, reject) => {
    child.once("message", (result: EngineRounds) => resolve(result));
    child.once("exit", (code) => reject(new Error(`a round of the engine ended with ${code}`)));
  });
}

/** Runs in the process that `measureEngine` started. */
export function runEngineRounds(argument: string): void {
  const { engineCase, rounds } = JSON.parse(argument) as {
    readonly engineCase: EngineCase;
    readonly rounds: { readonly count: number; readonly seconds: number };
  };
  const bench = new EngineBench(engineCase);
  bench.fill();
  bench.run(2 * rounds.seconds);
  const speeds = Array.from({ length: rounds.count }, () => bench.run(rounds.seconds));
  const told: EngineRounds = {
    perSecond: speeds.map(({ overall }) => overall),
    decidingPerSecond: speeds.map(({ deciding }) => deciding),
    admitted: bench.admittedPart,
    tracked: bench.tracked,
  };
  process.send?.(told, () => process.disconnect());
}

/** An engine with its keys, driven as fast as it goes. */
class EngineBench {
  readonly #engine: PodLimiter;
  readonly #store = new EmbeddedStore({ lanes: LANES });
  readonly #limits: readonly Limit[];
  readonly #keys: number;
  readonly #nextKey: () => number;
  readonly #prng = new Prng(SEED);
  readonly #draw: () => number = () => this.#prng.draw();
  #storeUs: DurationUs = 0;
  #admitted = 0;
  #decided = 0;

  constructor({ mode, keys, limits, access }: EngineCase) {
    const configured = Array.from({ length: limits }, (_, index) => benchLimit(`limit-${index}`));
    this.#engine = new PodLimiter(
      {
        limits: configured,
        sole: mode === "sole",
        lanes: LANES,
        commandTimeoutUs: 50_000,
        decisionTimeoutUs: 10_000,
        // A row per limit and key.
        keysMax: keys * limits,
        podId: "bench",
      },
      0,
    );
    this.#limits = configured;
    this.#keys = keys;
    this.#nextKey = keyOrder(access, keys, this.#draw);
    this.#engine.membershipChanged(0, { pods: 1, silent: 0 });
  }

  get admittedPart(): number {
    return this.#admitted / this.#decided;
  }

  get tracked(): number {
    return this.#engine.counts(this.#nowUs()).trackedKeys;
  }

  /** Asks for every key once. */
  fill(): void {
    for (let key = 0; key < this.#keys; key += STRIDE) {
      const now = this.#nowUs();
      const end = Math.min(this.#keys, key + STRIDE);
      for (let next = key; next < end; next += 1) this.#check(now, next);
      if (this.#engine.wakeAt <= now) this.#tick(now);
    }
  }

  /** @returns Checks per second of the engine's own processor time. */
  run(seconds: number): { readonly overall: number; readonly deciding: number } {
    const startUs = this.#nowUs();
    const endUs = startUs + seconds * US_PER_SECOND;
    let checks = 0;
    let tickUs: DurationUs = 0;
    let now = startUs;
    for (; now < endUs; now = this.#nowUs()) {
      for (let i = 0; i < STRIDE; i += 1) this.#check(now, this.#nextKey());
      checks += STRIDE;
      if (this.#engine.wakeAt > now) continue;
      const tickFromUs = this.#nowUs();
      this.#tick(now);
      tickUs += this.#nowUs() - tickFromUs;
    }
    const perSecond = (us: DurationUs): number => (checks / us) * US_PER_SECOND;
    return { overall: perSecond(now - startUs), deciding: perSecond(now - startUs - tickUs) };
  }

  #nowUs(): InstantUs {
    return processorUs() - this.#storeUs;
  }

  #check(now: InstantUs, key: number): void {
    const outcome = this.#engine.decide(now, this.#checksOf(`user-${key}`));
    this.#decided += 1;
    if (!("held" in outcome) && outcome[0]?.allowed === true) this.#admitted += 1;
  }

  /** New objects and a new string, as each request brings them. */
  #checksOf(key: string): readonly Check[] {
    const [first, second, third] = this.#limits as readonly [Limit, Limit?, Limit?];
    if (second === undefined || third === undefined) return [{ limit: first, key, cost: 1 }];
    return [
      { limit: first, key, cost: 1 },
      { limit: second, key, cost: 1 },
      { limit: third, key, cost: 1 },
    ];
  }

  #tick(now: InstantUs): void {
    for (const effect of this.#engine.tick(now, this.#draw)) {
      if (effect.kind === "exchange") this.#exchange(now, effect.batch);
      else if (effect.kind === "answer" && effect.decisions[0]?.allowed === true)
        this.#admitted += 1;
    }
  }

  #exchange(now: InstantUs, batch: Batch): void {
    const usedBeforeUs = processorUs();
    const reply = this.#store.reconcile(now, "bench/1", batch);
    this.#storeUs += processorUs() - usedBeforeUs;
    this.#engine.replied(now, batch.lane, batch.seq, reply);
  }
}

/** As the Redis store on a single server has. */
const LANES = 4;

function benchLimit(name: string): Limit {
  return defineLimit({
    name,
    tokens: 100,
    spanUs: US_PER_SECOND,
    burst: 100,
    intervalUs: 100_000,
    fallback: { policy: "local", margin: 0.9, maxPods: 20 },
  });
}

/** Processor time of this process so far, user and system. */
function processorUs(): DurationUs {
  const { user, system } = process.cpuUsage();
  return user + system;
}
