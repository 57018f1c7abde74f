/**
 * One life of one pod: its clock, its timers, its calls to the store, and what happens to all of
 * them when the event loop stalls or the process dies.
 */
import type { Limit } from "../src/core/limit.ts";
import type { DurationUs, InstantUs } from "../src/core/units.ts";
import type { EventLoop, Timer } from "./event-loop.ts";
import { HostClock } from "./host-clock.ts";
import type { Network } from "./network.ts";
import type { Prng } from "./prng.ts";
import type { CallOutcome, FleetLag, NodeContext, StoreCall, StoreProgram } from "./scheme.ts";
import type { Served, StoreHost } from "./store-host.ts";

/** What all pods of a world share. */
export interface PodSurroundings<Store extends StoreProgram> {
  readonly loop: EventLoop;
  readonly network: Network;
  readonly storeHost: StoreHost;
  readonly store: Store;
  readonly limits: readonly Limit[];
  livePods(): number;
  /** Calls `changed` whenever the number of live pods changes. */
  onFleetChange(changed: () => void): void;
  onCall(pod: number, keys: readonly string[], bytes: number): void;
  /** As many of a pod's calls are over, answered or not. */
  onCallsEnded(pod: number, calls: number): void;
  onDelivery(pod: number, toStore: boolean): void;
}

/** Requests and messages that may queue up at a stalled pod. */
const QUEUED_MAX = 1_000_000;

export class PodHost<Store extends StoreProgram> implements NodeContext<Store> {
  readonly pod: number;
  readonly incarnation: number;
  readonly random: Prng;
  readonly clock: HostClock;
  readonly #around: PodSurroundings<Store>;
  #dead = false;
  #stalls = 0;
  #unanswered = 0;
  readonly #timersDue: (() => void)[] = [];
  readonly #inputDue: (() => void)[] = [];

  constructor(
    around: PodSurroundings<Store>,
    pod: number,
    incarnation: number,
    random: Prng,
    clockShiftUs: number,
  ) {
    this.#around = around;
    this.pod = pod;
    this.incarnation = incarnation;
    this.random = random;
    const startUs = 1_000_000 + random.below(1_000_000_000) + clockShiftUs;
    this.clock = new HostClock(around.loop.nowUs, startUs);
  }

  get limits(): readonly Limit[] {
    return this.#around.limits;
  }

  get dead(): boolean {
    return this.#dead;
  }

  nowUs(): InstantUs {
    return this.clock.at(this.#around.loop.nowUs);
  }

  livePods(): number {
    return this.#around.livePods();
  }

  after(delayUs: DurationUs, run: () => void): Timer {
    const timer: Timer = { run };
    this.#arm(timer, this.nowUs() + delayUs);
    return timer;
  }

  cancel(timer: Timer): void {
    timer.run = undefined;
  }

  /** Hands something from outside (a request, a message) to the pod's event loop. */
  input(run: () => void): void {
    if (this.#dead) return;
    if (this.#stalls === 0) {
      run();
      return;
    }
    if (this.#inputDue.length >= QUEUED_MAX) throw new Error(`${QUEUED_MAX} inputs wait at a pod`);
    this.#inputDue.push(run);
  }

  call<Reply>(call: StoreCall<Store, Reply>): void {
    const { network, storeHost, store } = this.#around;
    this.#around.onCall(this.pod, call.keys, call.bytes);
    this.#unanswered += 1;
    let ended = false;
    const end = (outcome: CallOutcome<Reply>): void => {
      if (ended) return;
      ended = true;
      this.cancel(timeout);
      this.#unanswered -= 1;
      this.#around.onCallsEnded(this.pod, 1);
      call.done(outcome);
    };
    const timeout = this.after(call.timeoutUs, () => end({ ok: false, trouble: "timeout" }));
    const reply = (served: Served<Reply>): void => {
      network.send(this.pod, "from-store", () => {
        this.#around.onDelivery(this.pod, false);
        this.input(() =>
          end(
            "refused" in served
              ? { ok: false, trouble: "unreachable" }
              : { ok: true, reply: served.reply },
          ),
        );
      });
    };
    network.send(this.pod, "to-store", () => {
      this.#around.onDelivery(this.pod, true);
      storeHost.serve((storeNowUs) => call.run(store, storeNowUs), reply);
    });
  }

  watchFleet(lag: FleetLag, told: (pods: number) => void): void {
    let seen = this.livePods();
    let sight = 0;
    let toldSight = 0;
    told(seen);
    this.#around.onFleetChange(() => {
      const pods = this.livePods();
      const delayUs = pods > seen ? lag.upUs : lag.downUs;
      seen = pods;
      sight += 1;
      const thisSight = sight;
      this.after(delayUs, () => {
        // A slow notice must not undo a quicker one of something that happened later.
        if (thisSight < toldSight) return;
        toldSight = thisSight;
        told(pods);
      });
    });
  }

  /** Ends this life: timers, messages and requests of it are forgotten. */
  kill(): void {
    this.#dead = true;
    this.#around.onCallsEnded(this.pod, this.#unanswered);
    this.#timersDue.length = 0;
    this.#inputDue.length = 0;
  }

  /** The event loop stands still until as many `resume`s; a paused machine's clock does, too. */
  stall(withClock: boolean): void {
    this.#stalls += 1;
    if (withClock) this.clock.stop(this.#around.loop.nowUs);
  }

  /** Due timers run before waiting input, as in Node.js. */
  resume(withClock: boolean): void {
    if (withClock) this.clock.resume(this.#around.loop.nowUs);
    this.#stalls -= 1;
    if (this.#stalls > 0) return;
    for (const run of this.#timersDue.splice(0)) run();
    for (const run of this.#inputDue.splice(0)) this.input(run);
  }

  #arm(timer: Timer, dueUs: InstantUs): void {
    const waitUs = Math.max(0, this.clock.trueDelay(dueUs - this.nowUs()));
    this.#around.loop.after(waitUs, () => this.#due(timer, dueUs));
  }

  #due(timer: Timer, dueUs: InstantUs): void {
    if (this.#dead || timer.run === undefined) return;
    if (this.#stalls > 0) {
      this.#timersDue.push(() => this.#due(timer, dueUs));
      return;
    }
    // The clock may have drifted or stood still since the timer was armed.
    if (this.nowUs() < dueUs) {
      this.#arm(timer, dueUs);
      return;
    }
    const { run } = timer;
    timer.run = undefined;
    run();
  }
}
