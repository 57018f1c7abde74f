/** The pods of a run: who lives, who serves, who joins and ends, and who watches that. */
import type { Limit } from "../src/core/limit.ts";
import type { Autoscaler } from "./autoscaler.ts";
import type { EventLoop } from "./event-loop.ts";
import type { Network } from "./network.ts";
import { PodHost, type PodSurroundings } from "./pod-host.ts";
import type { Prng } from "./prng.ts";
import type { Recorder } from "./recorder.ts";
import type { RunEvent } from "./run-result.ts";
import type { SchemeNode, SchemeRun, StoreProgram } from "./scheme.ts";
import type { StoreHost } from "./store-host.ts";
import type { Trace } from "./trace.ts";
import { ANY_POD } from "./workload.ts";

/** One life of a pod. */
export interface Pod {
  readonly host: PodHost<StoreProgram>;
  readonly node: SchemeNode;
  serving: boolean;
  /** Requests handed to it and not answered yet. */
  open: number;
}

export interface FleetParts {
  readonly loop: EventLoop;
  readonly network: Network;
  readonly storeHost: StoreHost;
  readonly run: SchemeRun;
  readonly recorder: Recorder;
  readonly trace: Trace;
  readonly random: Prng;
  /** Added to where pods' clocks start. */
  readonly clockShiftUs: number;
  /** Limits in force now, for pods that join. */
  limits(): readonly Limit[];
  /** A pod has left in good order; named by number and incarnation. */
  left(life: string): void;
}

export class Fleet {
  readonly pods: Map<number, Pod> = new Map();
  /** Largest number of serving pods so far. */
  largest = 0;
  /** Requests that died with their pod. */
  abandoned = 0;
  readonly #parts: FleetParts;
  readonly #routing: Prng;
  readonly #incarnations: Map<number, number> = new Map();
  readonly #watchers: (() => void)[] = [];
  #serving: readonly number[] = [];
  #nextPod = 0;

  constructor(parts: FleetParts) {
    this.#parts = parts;
    this.#routing = parts.random.fork("routing");
  }

  /** Pods that serve, by number. */
  get serving(): readonly number[] {
    return this.#serving;
  }

  /** The pod that gets a request sent to `wanted`; `ANY_POD` when none serves. */
  route(wanted: number): number {
    if (wanted !== ANY_POD && this.pods.get(wanted)?.serving === true) return wanted;
    if (this.#serving.length === 0) return ANY_POD;
    return this.#serving[this.#routing.below(this.#serving.length)] as number;
  }

  /** Starts a pod; without a number a new one. */
  join(number: number = this.#nextPod): void {
    const { loop, random, recorder, run } = this.#parts;
    if (this.pods.has(number)) return;
    this.#nextPod = Math.max(this.#nextPod, number + 1);
    const incarnation = this.#incarnations.get(number) ?? 0;
    this.#incarnations.set(number, incarnation + 1);
    const host = new PodHost(
      this.#surroundings(),
      number,
      incarnation,
      random.fork(`pod ${number}.${incarnation}`),
      this.#parts.clockShiftUs,
    );
    // Serving before the node is built: a pod counts itself.
    this.#setServing([...this.#serving, number]);
    recorder.podJoined(number, loop.nowUs);
    this.pods.set(number, { host, node: run.node(host), serving: true, open: 0 });
    if (loop.nowUs > 0) this.#note("join", `pod ${number}`);
  }

  /** A graceful stop; the pod's node says when it is done. */
  leave(number: number): void {
    const pod = this.pods.get(number);
    if (pod === undefined || !pod.serving) return;
    this.#stopServing(number, pod);
    this.#note("leave", `pod ${number}`);
    const gone = (): void => {
      if (pod.host.dead) return;
      this.#parts.left(`${number}.${pod.host.incarnation}`);
      pod.host.kill();
      this.pods.delete(number);
    };
    if (pod.node.leave === undefined) gone();
    else pod.host.input(() => pod.node.leave?.(gone));
  }

  /** @returns Tokens that the pod had admitted and not yet reported. */
  crash(number: number): number {
    const pod = this.pods.get(number);
    if (pod === undefined) return 0;
    const lost = pod.node.inspect?.().unreported ?? 0;
    this.abandoned += pod.open;
    if (pod.serving) this.#stopServing(number, pod);
    pod.host.kill();
    this.pods.delete(number);
    this.#note("crash", `pod ${number}`);
    return lost;
  }

  /** Lets an autoscaler look at the fleet for the rest of the run. */
  autoscale(autoscaler: Autoscaler, requestsSeen: () => number): void {
    const { loop } = this.#parts;
    const run = autoscaler.start();
    let seen = 0;
    let starting = 0;
    const look = (): void => {
      const pods = this.#serving.length;
      const requestsPerSecond = (requestsSeen() - seen) / (autoscaler.periodUs / 1e6);
      seen = requestsSeen();
      const wanted = run.wanted({ nowUs: loop.nowUs, pods, requestsPerSecond });
      for (let i = pods + starting; i < wanted; i += 1) {
        starting += 1;
        loop.after(autoscaler.startupUs, () => {
          starting -= 1;
          this.join();
        });
      }
      const newestFirst = [...this.#serving].sort((a, b) => b - a);
      for (const pod of newestFirst.slice(0, Math.max(0, pods - wanted))) this.leave(pod);
      loop.after(autoscaler.periodUs, look);
    };
    loop.after(autoscaler.periodUs, look);
  }

  #stopServing(number: number, pod: Pod): void {
    pod.serving = false;
    this.#parts.recorder.podEnded(number, this.#parts.loop.nowUs);
    this.#setServing(this.#serving.filter((other) => other !== number));
  }

  #setServing(numbers: readonly number[]): void {
    this.#serving = numbers;
    this.largest = Math.max(this.largest, numbers.length);
    for (const changed of this.#watchers) changed();
  }

  #note(kind: RunEvent["kind"], text: string): void {
    this.#parts.recorder.events.push({ atUs: this.#parts.loop.nowUs, kind, text });
  }

  #surroundings(): PodSurroundings<StoreProgram> {
    const { loop, network, storeHost, run, recorder, trace } = this.#parts;
    return {
      loop,
      network,
      storeHost,
      store: run.store,
      limits: this.#parts.limits(),
      livePods: () => this.#serving.length,
      onFleetChange: (changed) => {
        this.#watchers.push(changed);
      },
      onCall: (_pod, keys, bytes) => recorder.called(loop.nowUs, keys, bytes),
      onCallsEnded: (_pod, calls) => recorder.callsEnded(calls),
      onDelivery: (pod, toStore) => trace.add(loop.nowUs, pod, toStore ? 2 : 3),
    };
  }
}
