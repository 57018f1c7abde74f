/**
 * One run: starts the processes, plays the schedule, watches once a second, and stops everything,
 * whatever happens on the way.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type InstantUs, US_PER_SECOND } from "../src/core/units.ts";
import { checkRequest } from "./check-request.ts";
import { type DecisionTimes, merged } from "./decision-times.ts";
import { arrivalsOf, Journal } from "./journal.ts";
import { Load } from "./load.ts";
import { monotonicUs, sleepUntil } from "./monotonic.ts";
import type { RunOptions } from "./options.ts";
import { LIMIT_NAME, Pod, type PodStatus } from "./pod.ts";
import { RedisServer } from "./redis-server.ts";
import type { Act } from "./schedule.ts";
import { type Change, judge, type Verdict } from "./verdict.ts";
import { PodWatch, type Sight } from "./watch.ts";

const WATCH_EVERY_US = US_PER_SECOND;
const FLEET_COUNTED_WITHIN_MS = 10_000;
const STOP_WITHIN_MS = 3_000;

export interface RunResult {
  readonly verdict: Verdict;
  /** EVAL and EVALSHA calls that the servers counted. */
  readonly scriptCalls: number;
  /** What each pod that lived to the end says it has admitted, by number. */
  readonly admittedByPods: ReadonlyMap<number, number>;
  /** Inside the pods that lived to the end. */
  readonly decisionTimes: DecisionTimes;
  readonly sights: readonly Sight[];
  readonly podsMost: number;
}

/** The run was given up. */
export class Aborted extends Error {
  override readonly name = "Aborted";
}

/**
 * Plays a run.
 *
 * @param onSight - Told once a second what the fleet looks like.
 * @param signal - Gives the run up: everything is stopped, then the promise rejects.
 * @throws {Error} When a process cannot be started or dies unasked.
 */
export async function playRun(
  options: RunOptions,
  onSight: (sight: Sight) => void,
  signal: AbortSignal,
): Promise<RunResult> {
  const run = new Run(options, onSight);
  const aborted = new Promise<never>((_resolve, reject) => {
    const abort = (): void => reject(new Aborted("the run was given up"));
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
  const playing = run.play();
  try {
    return await Promise.race([playing, run.died, aborted]);
  } finally {
    await run.stop();
    // A run that was given up may have been starting a process in this moment.
    await playing.catch(() => {});
    await run.stop();
    run.clear();
  }
}

class Run {
  /** Rejects when a process dies that was not told to. */
  readonly died: Promise<never>;
  readonly #options: RunOptions;
  readonly #folder = mkdtempSync(join(tmpdir(), "aliquot-fleet-"));
  readonly #journal = new Journal();
  readonly #watch: PodWatch;
  readonly #load: Load;
  /** Living pods that get load or will, the oldest first. */
  #pods: Pod[] = [];
  readonly #processes = new Set<Pod>();
  #redis: RedisServer | undefined;
  #changes: Change[] = [];
  #offered: number;
  readonly #hot: Map<number, number>;
  #podsStarted = 0;
  #podsMost = 0;
  #isStopping = false;
  #fail: (error: Error) => void = () => {};

  constructor(options: RunOptions, onSight: (sight: Sight) => void) {
    this.#options = options;
    this.#offered = options.offered;
    this.#hot = new Map(options.hot);
    this.#watch = new PodWatch(options, onSight);
    this.died = new Promise((_resolve, reject) => {
      this.#fail = reject;
    });
    this.died.catch(() => {});
    this.#load = new Load((records) => {
      this.#journal.add(records);
      for (const arrival of arrivalsOf(records)) this.#watch.count(arrival);
    });
    this.#load.ended.catch((error: Error) => {
      if (!this.#isStopping) this.#fail(error);
    });
  }

  async play(): Promise<RunResult> {
    const startUs = await this.#begin();
    let nextSightUs = startUs + WATCH_EVERY_US;
    const steps = [...this.#options.steps];
    const pending: Promise<void>[] = [];
    const endUs = startUs + this.#options.durationUs;
    while (monotonicUs() < endUs && !this.#isStopping) {
      const stepUs = steps[0] === undefined ? endUs : startUs + steps[0].atUs;
      await sleepUntil(Math.min(stepUs, nextSightUs, endUs));
      const nowUs = monotonicUs();
      for (let step = steps[0]; step !== undefined; step = steps[0]) {
        if (startUs + step.atUs > nowUs) break;
        steps.shift();
        this.#changes.push({ atUs: monotonicUs(), cause: step.text });
        this.#watch.note(step.text);
        // Starting pods takes a while, and the schedule does not wait for it.
        pending.push(this.#act(step.act).catch((error: Error) => this.#fail(error)));
      }
      if (nowUs < nextSightUs) continue;
      nextSightUs += WATCH_EVERY_US;
      await this.#look(nowUs - startUs);
    }
    await this.#load.end();
    await Promise.all(pending);
    return this.#conclude(endUs);
  }

  async #begin(): Promise<InstantUs> {
    const { embedded, pods } = this.#options;
    if (!embedded) this.#redis = await RedisServer.start(this.#folder);
    this.#guard();
    const first = await this.#startPods(pods);
    await this.#untilCounted(pods);
    const startUs = monotonicUs();
    this.#changes = [{ atUs: startUs, cause: "start" }];
    for (const pod of first) this.#target(pod);
    return startUs;
  }

  /** The first pod to start knows of no other for a heartbeat; that is not what a run measures. */
  async #untilCounted(pods: number): Promise<void> {
    const deadline = monotonicUs() + FLEET_COUNTED_WITHIN_MS * 1_000;
    for (;;) {
      const statuses = await Promise.all(this.#pods.map((pod) => pod.status()));
      if (statuses.every((status) => status?.livePods === pods)) return;
      if (monotonicUs() > deadline) {
        const counts = statuses.map((status) => status?.livePods ?? "?").join(", ");
        throw new Error(`${pods} pods were started, but they count ${counts}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async #startPods(count: number): Promise<Pod[]> {
    const { rate, burst, interval, decisionTimeout, membershipTimeout, margin } = this.#options;
    const starts = Array.from({ length: count }, () => {
      this.#podsStarted += 1;
      return Pod.start(
        {
          number: this.#podsStarted,
          folder: this.#folder,
          redisUrl: this.#redis?.url,
          ...{ rate, burst, interval, decisionTimeout, membershipTimeout, margin },
        },
        (pod) => this.#spawned(pod),
      );
    });
    const pods = await Promise.all(starts);
    this.#pods.push(...pods);
    this.#pods.sort((a, b) => a.number - b.number);
    this.#podsMost = Math.max(this.#podsMost, this.#pods.length);
    return pods;
  }

  #spawned(pod: Pod): void {
    this.#processes.add(pod);
    this.#guard();
    // A pod that was being spawned while the run was given up.
    if (this.#isStopping) pod.signal("SIGKILL");
    void pod.exited.then(() => {
      this.#processes.delete(pod);
      if (this.#isStopping || !this.#pods.includes(pod)) return;
      this.#fail(new Error(`${pod.name} ended by itself:\n${pod.output}`));
    });
  }

  #guard(): void {
    const pids = [this.#redis?.pid, ...[...this.#processes].map(({ pid }) => pid)];
    this.#load.tell({ kind: "guard", pids: pids.filter((pid) => pid !== undefined) });
  }

  #target(pod: Pod): void {
    const request = checkRequest(LIMIT_NAME, this.#options.key);
    const perSecond = this.#hot.get(pod.number) ?? this.#offered;
    const { number, socket } = pod;
    this.#load.tell({ kind: "target", pod: number, socket, perSecond, request });
  }

  async #act(act: Act): Promise<void> {
    switch (act.kind) {
      case "add":
        for (const pod of await this.#startPods(act.pods)) this.#target(pod);
        return;
      case "kill":
        return this.#remove(act.pods, "SIGKILL");
      case "term":
        return this.#remove(act.pods, "SIGTERM");
      case "redis-stop":
        await this.#redis?.stop();
        return;
      case "redis-hang":
        this.#redis?.pause();
        return;
      case "redis-start":
        await this.#redis?.start();
        return this.#guard();
      case "redis":
        await this.#redis?.ask(act.command);
        return;
      case "offer":
        this.#offer(act.perSecond, act.pod);
    }
  }

  /** As an orchestrator does it: a pod that is asked to stop gets no more requests from then on. */
  #remove(count: number, signal: "SIGKILL" | "SIGTERM"): void {
    for (const pod of this.#pods.splice(-count)) {
      if (signal === "SIGTERM") this.#load.tell({ kind: "drop", pod: pod.number });
      pod.signal(signal);
      if (signal === "SIGKILL") this.#load.tell({ kind: "drop", pod: pod.number });
    }
  }

  #offer(perSecond: number, only: number | undefined): void {
    if (only === undefined) {
      this.#offered = perSecond;
      this.#hot.clear();
    } else {
      this.#hot.set(only, perSecond);
    }
    for (const { number } of this.#pods) {
      if (only !== undefined && only !== number) continue;
      this.#load.tell({ kind: "offer", pod: number, perSecond });
    }
  }

  async #look(sinceStartUs: number): Promise<void> {
    const statuses = new Map<number, PodStatus | undefined>();
    await Promise.all([
      this.#redis?.refreshCalls(),
      ...this.#pods.map(async (pod) => statuses.set(pod.number, await pod.status())),
    ]);
    this.#watch.look(sinceStartUs, statuses, this.#redis?.state);
  }

  async #conclude(endUs: InstantUs): Promise<RunResult> {
    await this.#redis?.refreshCalls();
    const admittedByPods = new Map<number, number>();
    for (const pod of this.#pods) {
      const status = await pod.status();
      if (status !== undefined) admittedByPods.set(pod.number, status.admitted);
    }
    return {
      verdict: judge(this.#options.limit, this.#journal, this.#changes, endUs),
      scriptCalls: this.#redis?.scriptCalls ?? 0,
      admittedByPods,
      decisionTimes: merged(await Promise.all(this.#pods.map((pod) => pod.decisionTimes()))),
      sights: this.#watch.sights,
      podsMost: this.#podsMost,
    };
  }

  /** Stops every process that was started. Never throws; safe to call again. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    const pods = [...this.#processes];
    for (const pod of pods) pod.signal("SIGTERM");
    const late = setTimeout(() => {
      for (const pod of pods) if (pod.isRunning) pod.signal("SIGKILL");
    }, STOP_WITHIN_MS);
    await Promise.all(pods.map(({ exited }) => exited));
    clearTimeout(late);
    await this.#redis?.stop();
    await this.#load.close();
  }

  /** Removes what the processes left on the disk. */
  clear(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
