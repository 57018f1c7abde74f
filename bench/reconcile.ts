/**
 * What it costs to reconcile many keys: four pods and a Redis, all real processes, with 10,000 and
 * with 100,000 keys that are active in every pod.
 *
 * First every key is asked for once, as fast as the pods answer; then nothing more is asked, and
 * what is left of the round shows what reconciling costs without anything else. After that the
 * same number of checks a second goes to few keys often and to many keys rarely.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RedisServer } from "../fleet/redis-server.ts";
import { processorUs } from "./processor-time.ts";
import { BATCH_CHECKS, ReconcilePod } from "./reconcile-pod.ts";

export interface ReconcileCase {
  /** Active keys of each pod; the same in all. */
  readonly keys: number;
}

export const RECONCILE_CASES: readonly ReconcileCase[] = [{ keys: 10_000 }, { keys: 100_000 }];

export const RECONCILE_PODS = 4;
/** Checks per second of each pod while the load is steady, each of another key. */
export const STEADY_CHECKS = 3_000;
const STEADY_SECONDS_MIN = 10;
const QUIET_POLL_MS = 250;
/** Fewer script calls in one poll than this are heartbeats. */
const QUIET_CALLS = 20;
const ROUND_WITHIN_MS = 180_000;

/** Times of the script calls that a server counted, us. */
export interface ScriptTimes {
  readonly calls: number;
  readonly mean: number;
  readonly p99: number;
  /** From SLOWLOG. */
  readonly longest: number;
  readonly above1ms: number;
}

export interface ReconcilePhase {
  readonly seconds: number;
  /** Keys exchanged and batches, over all pods. */
  readonly keys: number;
  readonly batches: number;
  /** Event-loop delay of each pod, ms. */
  readonly loopP99: readonly number[];
  readonly loopMax: readonly number[];
  /** Processor time of all pods and of Redis, us. */
  readonly podsUs: number;
  readonly redisUs: number;
  readonly scripts: ScriptTimes;
}

export interface ReconcileFigures {
  /** The rest of a round in which every key was asked for, and nothing else. */
  readonly round: ReconcilePhase;
  /** With `STEADY_CHECKS` on each pod. */
  readonly steady: ReconcilePhase;
  /** The beginning of another round under load, without anything that takes a core from Redis. */
  readonly undisturbed: ReconcilePhase | undefined;
}

/** Measures one case; starts and stops all its processes. */
export async function measureReconcile({ keys }: ReconcileCase): Promise<ReconcileFigures> {
  const folder = mkdtempSync(join(tmpdir(), "aliquot-bench-"));
  const pods: ReconcilePod[] = [];
  const redis = await RedisServer.start(folder);
  const killAll = (): void => {
    for (const pod of pods) pod.kill();
    redis.destroy();
  };
  process.once("exit", killAll);
  try {
    for (let i = 0; i < RECONCILE_PODS; i += 1) {
      pods.push(await ReconcilePod.start(folder, `pod-${i}`, redis.url, keys));
    }
    for (const pod of pods) await pod.untilCounted(RECONCILE_PODS);
    await redis.ask(["CONFIG", "SET", "slowlog-log-slower-than", "500", "slowlog-max-len", "4096"]);
    const stage = new Stage(redis, pods);
    const askSteadily = async (seconds: number): Promise<void> => {
      await Promise.all(pods.map((pod) => pod.askSteadily(STEADY_CHECKS / BATCH_CHECKS, seconds)));
    };
    await Promise.all(pods.map((pod) => pod.askAll()));
    const round = await stage.during(() => stage.untilQuiet());
    const seconds = Math.max(STEADY_SECONDS_MIN, keys / STEADY_CHECKS);
    const steady = await stage.during(() => askSteadily(seconds));
    if (!putFirst(redis.pid ?? 0)) return { round, steady, undisturbed: undefined };
    await Promise.all(pods.map((pod) => pod.askAll()));
    const undisturbed = await stage.during(() => askSteadily(STEADY_SECONDS_MIN));
    return { round, steady, undisturbed };
  } finally {
    process.off("exit", killAll);
    for (const pod of pods) pod.kill();
    await redis.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Lets nothing take a core from Redis, as if it had a machine of its own: SLOWLOG also counts the
 * time in which a script stands still because others run. Only root may.
 */
function putFirst(pid: number): boolean {
  try {
    execFileSync("chrt", ["--fifo", "--all-tasks", "--pid", "10", String(pid)], {
      stdio: "ignore",
    });
    return true;
  } catch {
    return false;
  }
}

class Stage {
  readonly #redis: RedisServer;
  readonly #pods: readonly ReconcilePod[];

  constructor(redis: RedisServer, pods: readonly ReconcilePod[]) {
    this.#redis = redis;
    this.#pods = pods;
  }

  /** What happened between the beginning and the end of `act`. */
  async during(act: () => Promise<void>): Promise<ReconcilePhase> {
    await this.#redis.ask(["CONFIG", "RESETSTAT"]);
    await this.#redis.ask(["SLOWLOG", "RESET"]);
    const before = await Promise.all(this.#pods.map((pod) => pod.figures()));
    const [podsBefore, redisBefore] = [this.#podsUs(), this.#redisUs()];
    const startMs = performance.now();
    await act();
    const seconds = (performance.now() - startMs) / 1_000;
    const [podsUs, redisUs] = [this.#podsUs() - podsBefore, this.#redisUs() - redisBefore];
    const after = await Promise.all(this.#pods.map((pod) => pod.figures()));
    const sum = (part: "keys" | "batches"): number =>
      after.reduce((total, each, i) => total + each[part] - (before[i]?.[part] ?? 0), 0);
    return {
      seconds,
      keys: sum("keys"),
      batches: sum("batches"),
      loopP99: after.map(({ loopP99 }) => loopP99),
      loopMax: after.map(({ loopMax }) => loopMax),
      podsUs,
      redisUs,
      scripts: await this.#scriptTimes(),
    };
  }

  /** Resolves when nothing but heartbeats reaches Redis. @throws {Error} When it never comes. */
  async untilQuiet(): Promise<void> {
    const deadline = performance.now() + ROUND_WITHIN_MS;
    let before = await this.#calls();
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, QUIET_POLL_MS));
      const calls = await this.#calls();
      if (calls - before < QUIET_CALLS) return;
      if (performance.now() > deadline) throw new Error("a round does not come to its end");
      before = calls;
    }
  }

  async #calls(): Promise<number> {
    const stats = await this.#redis.ask(["INFO", "commandstats"]);
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  }

  async #scriptTimes(): Promise<ScriptTimes> {
    const stats = await this.#redis.ask(["INFO", "commandstats"]);
    const [, calls = 0, us = 0] = (/cmdstat_evalsha:calls=(\d+),usec=(\d+)/.exec(stats) ?? []).map(
      Number,
    );
    const latency = await this.#redis.ask(["INFO", "latencystats"]);
    const p99 = Number(/latency_percentiles_usec_evalsha:.*?p99=([\d.]+)/.exec(latency)?.[1]);
    const slow = await this.#redis.slowScripts();
    return {
      calls,
      mean: us / calls,
      p99,
      longest: Math.max(0, ...slow),
      above1ms: slow.filter((each) => each >= 1_000).length,
    };
  }

  #podsUs(): number {
    return this.#pods.reduce((total, { pid }) => total + processorUs(pid), 0);
  }

  #redisUs(): number {
    return processorUs(this.#redis.pid ?? 0);
  }
}
