/**
 * One run: starts the processes, plays the schedule, watches once a second, and stops everything,
 * whatever happens on the way.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type InstantUs, US_PER_SECOND } from "../src/core/units.ts";
import { type Danger, dangerOf } from "./danger.ts";
import { type DecisionTimes, merged } from "./decision-times.ts";
import { arrivalsOf, Journal, LIMIT } from "./journal.ts";
import { Load } from "./load.ts";
import { monotonicUs, sleepUntil } from "./monotonic.ts";
import { OfferedLoad } from "./offered-load.ts";
import type { RunOptions } from "./options.ts";
import { FLEET_NAME, LIMIT_NAME, type LimitStanding, type Pod } from "./pod.ts";
import { PodGroup } from "./pod-group.ts";
import type { Act } from "./schedule.ts";
import { stateName } from "./stored-tokens.ts";
import { countTokens, type TokenCount } from "./token-count.ts";
import { Topology } from "./topology.ts";
import { type Change, judge, type Verdict } from "./verdict.ts";
import { PodWatch, type Sight } from "./watch.ts";

const WATCH_EVERY_US = US_PER_SECOND;

export interface RunResult {
  readonly verdict: Verdict;
  /** How the measured limit was kept at the start. */
  readonly standing: LimitStanding;
  /** Undefined without Redis. */
  readonly count: TokenCount | undefined;
  readonly dangers: readonly Danger[];
  /** When the store went away. */
  readonly outagesUs: readonly InstantUs[];
  readonly journal: Journal;
  /** Why requests failed, of the first ones. */
  readonly failures: readonly string[];
  /** EVAL and EVALSHA calls that the servers counted. */
  readonly scriptCalls: number;
  /** What each pod that lived to the end says it has admitted, by number. */
  readonly admittedByPods: ReadonlyMap<number, number>;
  /** Inside the pods that lived to the end. */
  readonly decisionTimes: DecisionTimes;
  /** The longest time that the event loop of one of them was kept from turning. */
  readonly loopDelayMs: number;
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
  readonly #offered: OfferedLoad;
  readonly #dangers: Danger[] = [];
  readonly #outagesUs: InstantUs[] = [];
  #group: PodGroup | undefined;
  #topology: Topology | undefined;
  #serverPids: (() => number | undefined)[] = [];
  #changes: Change[] = [];
  #isStopping = false;
  #fail: (error: Error) => void = () => {};

  constructor(options: RunOptions, onSight: (sight: Sight) => void) {
    this.#options = options;
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
    this.#offered = new OfferedLoad(this.#load, options);
  }

  async play(): Promise<RunResult> {
    const group = await this.#begin();
    const [first] = group.pods;
    const standing = await first?.standing();
    if (standing === undefined) throw new Error("no pod tells its limits");
    // The delays of the start are not what a run measures.
    await group.times();
    const startUs = monotonicUs();
    this.#changes = [{ atUs: startUs, cause: "start" }];
    for (const pod of group.pods) this.#offered.begin(pod);
    const endUs = startUs + this.#options.durationUs;
    await this.#playSteps(group, startUs, endUs);
    return this.#conclude(group, standing, endUs);
  }

  async #begin(): Promise<PodGroup> {
    const { embedded, key, redis } = this.#options;
    if (!embedded) {
      const name = stateName(FLEET_NAME, LIMIT_NAME, key);
      this.#topology = await Topology.start(redis, this.#folder, name, (server) => {
        this.#serverPids.push(() => server.pid);
        this.#guard();
      });
    }
    const options = { ...this.#options, folder: this.#folder, redis: this.#topology?.yaml };
    const group = new PodGroup(
      options,
      () => this.#guard(),
      (error) => this.#fail(error),
    );
    this.#group = group;
    if (this.#isStopping) await group.stop();
    await group.start(this.#options.pods);
    await group.untilCounted();
    return group;
  }

  async #playSteps(group: PodGroup, startUs: InstantUs, endUs: InstantUs): Promise<void> {
    let nextSightUs = startUs + WATCH_EVERY_US;
    const steps = [...this.#options.steps];
    const pending: Promise<void>[] = [];
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
        pending.push(this.#act(step.act, group).catch((error: Error) => this.#fail(error)));
      }
      if (nowUs < nextSightUs) continue;
      nextSightUs += WATCH_EVERY_US;
      const [statuses] = await Promise.all([group.statuses(), this.#topology?.refreshCalls()]);
      this.#watch.look(nowUs - startUs, statuses, this.#topology?.state);
    }
    await Promise.all(pending);
    await this.#load.end();
  }

  #guard(): void {
    const pids = [...this.#serverPids.map((pid) => pid()), ...(this.#group?.pids ?? [])];
    this.#load.tell({ kind: "guard", pids: pids.filter((pid) => pid !== undefined) });
  }

  async #act(act: Act, group: PodGroup): Promise<void> {
    switch (act.kind) {
      case "add":
        for (const pod of await group.start(act.pods)) this.#offered.begin(pod);
        return;
      case "kill":
        return this.#kill(group, act.pods);
      case "term":
        await Promise.all(group.pods.slice(-act.pods).map((pod) => this.#end(group, pod)));
        return;
      case "restart":
        return this.#restart(group);
      case "offer":
        return this.#offered.change(act.perSecond, act.pod, group.pods);
      default:
        return this.#strike(act);
    }
  }

  #kill(group: PodGroup, count: number): void {
    const pods = group.pods.slice(-count);
    for (const pod of pods) {
      group.remove(pod);
      pod.signal("SIGKILL");
      this.#drop(pod.number);
    }
    this.#dangers.push({ kind: "kill", pods: pods.map(({ number }) => number) });
  }

  /** As an orchestrator does it: no more requests, and then the signal. */
  async #end(group: PodGroup, pod: Pod): Promise<void> {
    group.remove(pod);
    await this.#load.leave(pod.number);
    await group.terminate(pod);
    this.#drop(pod.number);
  }

  #drop(pod: number): void {
    this.#load.tell({ kind: "drop", pod });
  }

  /** One after another: its load goes to the others, it stops, and a new one takes its place. */
  async #restart(group: PodGroup): Promise<void> {
    for (const pod of [...group.pods]) {
      if (this.#isStopping) return;
      group.remove(pod);
      const rest = [...group.pods];
      await this.#offered.shift(pod, rest);
      await group.terminate(pod);
      this.#drop(pod.number);
      const [successor] = await group.start(1);
      if (successor === undefined) return;
      this.#offered.giveBack(pod, successor, rest);
      this.#watch.note(`${successor.name} for ${pod.name}`);
    }
  }

  async #strike(act: Act): Promise<void> {
    const topology = this.#topology;
    if (topology === undefined) return;
    const fromUs = monotonicUs();
    await topology.strike(act);
    this.#guard();
    if (act.kind === "redis-stop" || act.kind === "redis-hang") this.#outagesUs.push(fromUs);
    const danger = dangerOf(act, this.#options, fromUs, monotonicUs());
    if (danger !== undefined) this.#dangers.push(danger);
  }

  async #conclude(group: PodGroup, standing: LimitStanding, endUs: InstantUs): Promise<RunResult> {
    const topology = this.#topology;
    await topology?.refreshCalls();
    const times = await group.times();
    const admittedByPods = new Map<number, number>();
    for (const [pod, status] of await group.statuses()) {
      if (status !== undefined) admittedByPods.set(pod, status.admitted);
    }
    const measured = this.#journal.of(LIMIT.measured);
    return {
      verdict: judge(this.#options.limit, measured, this.#changes, endUs),
      standing,
      count: topology && (await countTokens(group.pods, topology, this.#journal)),
      dangers: this.#dangers,
      outagesUs: this.#outagesUs,
      journal: this.#journal,
      failures: this.#load.failures,
      scriptCalls: topology?.scriptCalls ?? 0,
      admittedByPods,
      decisionTimes: merged(times.map(({ decisions }) => decisions)),
      loopDelayMs: Math.max(...times.map(({ loopDelayMs }) => loopDelayMs)),
      sights: this.#watch.sights,
      podsMost: group.podsMost,
    };
  }

  /** Stops every process that was started. Never throws; safe to call again. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#group?.stop();
    await this.#topology?.dispose();
    await this.#load.close();
  }

  /** Removes what the processes left on the disk. */
  clear(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
