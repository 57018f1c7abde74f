/**
 * A fleet of engines around one embedded store in virtual time: what a case needs to be told as a
 * story. Messages take a fixed time each way; the store can refuse, hang or be emptied; pods join,
 * leave and vanish. The simulator does this at large; this one fits on a page.
 */
import type { Check, Decision } from "../../src/core/decision.ts";
import type { Batch } from "../../src/core/exchange.ts";
import { defineLimit, type Limit, type LimitSpec } from "../../src/core/limit.ts";
import { PodLimiter } from "../../src/core/pod-limiter.ts";
import type { StoreCall } from "../../src/core/store-call.ts";
import type { DurationUs, InstantUs } from "../../src/core/units.ts";
import { EmbeddedStore } from "../../src/store/embedded/embedded-store.ts";

export const SECOND = 1_000_000;
export const MS = 1_000;

/** A limit of `tokens` per second unless said otherwise, with a reconcile interval of 100 ms. */
export function limitOf(
  spec: Partial<LimitSpec> & { tokens: number; burst: number },
  fallback: Partial<Limit["fallback"]> = {},
): Limit {
  return defineLimit({
    name: "api",
    spanUs: SECOND,
    intervalUs: 100 * MS,
    ...spec,
    fallback: { policy: "local", margin: 0.9, maxPods: 20, ...fallback },
  });
}

export interface VirtualFleetOptions {
  readonly limits: readonly Limit[];
  readonly pods: number;
  readonly lanes?: number;
  /** One way. */
  readonly delayUs?: number;
  readonly membershipTimeoutUs?: number;
  readonly keysMax?: number;
}

export class VirtualPod {
  readonly index: number;
  readonly engine: PodLimiter;
  readonly recordId: string;
  isAlive = true;
  admitted = 0;
  denied = 0;
  readonly held: Map<number, (decisions: readonly Decision[]) => void> = new Map();

  constructor(index: number, engine: PodLimiter) {
    this.index = index;
    this.engine = engine;
    this.recordId = `pod-${index}/1`;
  }
}

interface Event {
  readonly at: InstantUs;
  readonly order: number;
  readonly run: () => void;
}

export class VirtualFleet {
  readonly store: EmbeddedStore;
  readonly pods: VirtualPod[] = [];
  /** Instants and costs of everything admitted. */
  readonly admissions: { at: InstantUs; cost: number; pod: number }[] = [];
  /** While `stopped`, calls lie in its buffers. */
  storeState: "up" | "refusing" | "hanging" | "stopped" = "up";
  /** Of each message of a call, one way. */
  callDelayUs: () => DurationUs;
  readonly #stopped: (() => void)[] = [];
  calls = 0;
  now: InstantUs = 0;
  /** Wall clock of the store; steps when moved. */
  storeClockOffsetUs: number = 1_700_000_000 * SECOND;
  readonly #options: Required<VirtualFleetOptions>;
  #events: Event[] = [];
  #order = 0;
  #random = 12345;

  constructor(options: VirtualFleetOptions) {
    this.#options = {
      lanes: 1,
      delayUs: MS,
      membershipTimeoutUs: 5 * SECOND,
      keysMax: 100_000,
      ...options,
    };
    this.store = new EmbeddedStore({ lanes: this.#options.lanes });
    this.callDelayUs = () => this.#options.delayUs;
    for (let i = 0; i < options.pods; i += 1) this.join();
    this.runUntil(50 * MS);
  }

  join(): VirtualPod {
    const index = this.pods.length;
    const engine = new PodLimiter(
      {
        limits: this.#options.limits,
        sole: false,
        lanes: this.#options.lanes,
        commandTimeoutUs: 50 * MS,
        decisionTimeoutUs: 10 * MS,
        keysMax: this.#options.keysMax,
        podId: `pod-${index}`,
      },
      this.now,
    );
    const pod = new VirtualPod(index, engine);
    this.pods.push(pod);
    this.#heartbeat(pod);
    return pod;
  }

  /** Leaves gracefully: reports everything, then leaves the membership. */
  leave(pod: VirtualPod): void {
    pod.engine.beginLeave(this.now);
    const poll = (): void => {
      this.#pump(pod);
      if (!pod.engine.settled) this.at(this.now + MS, poll);
      else {
        pod.isAlive = false;
        this.store.leave(pod.recordId);
      }
    };
    poll();
  }

  at(at: InstantUs, run: () => void): void {
    this.#order += 1;
    const event = { at, order: this.#order, run };
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.#events[middle] as Event;
      if (other.at < at || (other.at === at && other.order < event.order)) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, event);
  }

  runUntil(end: InstantUs): void {
    while (this.#events.length > 0 && (this.#events[0] as Event).at <= end) {
      const event = this.#events.shift() as Event;
      this.now = Math.max(this.now, event.at);
      event.run();
    }
    this.now = end;
  }

  /** Checks once; the answer may come later, when the check is held. */
  check(
    pod: VirtualPod,
    checks: readonly Check[],
    done: (decisions: readonly Decision[]) => void = () => {},
  ): void {
    const cost = checks.reduce((sum, check) => sum + check.cost, 0);
    const count = (decisions: readonly Decision[]): void => {
      if (decisions.every((decision) => decision.allowed)) {
        pod.admitted += cost;
        this.admissions.push({ at: this.now, cost, pod: pod.index });
      } else pod.denied += cost;
      done(decisions);
    };
    const outcome = pod.engine.decide(this.now, checks);
    if ("held" in outcome) pod.held.set(outcome.held, count);
    else count(outcome.map((decision) => ({ ...decision })));
    this.#pump(pod);
  }

  /** Asks once, and lets time pass until the answer is there. @throws Without one in a second. */
  ask(pod: VirtualPod, check: Check): Decision {
    const answers: Decision[] = [];
    this.check(pod, [check], (decisions) => answers.push(...decisions));
    for (let i = 0; answers.length === 0 && i < 1000; i += 1) this.runUntil(this.now + MS);
    const [decision] = answers;
    if (decision === undefined) throw new Error("no answer within a second");
    return decision;
  }

  /** Offers checks of cost 1 evenly spaced to a pod until `end`. */
  offer(pod: VirtualPod, perSecond: number, end: InstantUs, key = "k", limit?: Limit): void {
    const check = { limit: limit ?? (this.#options.limits[0] as Limit), key, cost: 1 };
    const spacing = SECOND / perSecond;
    // Pods out of step with one another, as they are.
    let next = this.now + (spacing * ((pod.index * 7) % 16)) / 16;
    const once = (): void => {
      if (!pod.isAlive) return;
      this.check(pod, [check]);
      next += spacing;
      if (next < end) this.at(next, once);
    };
    this.at(next, once);
  }

  admittedBetween(from: InstantUs, to: InstantUs): number {
    return this.admissions
      .filter(({ at }) => at >= from && at < to)
      .reduce((sum, { cost }) => sum + cost, 0);
  }

  /** Largest debt of one bucket that replays all admissions: over-admission in any span of time. */
  excess(rate: number, burst: number): number {
    let level = burst;
    let last = 0;
    let deepest = 0;
    for (const { at, cost } of this.admissions) {
      level = Math.min(burst, level + (rate * (at - last)) / SECOND) - cost;
      last = at;
      deepest = Math.max(deepest, -level);
    }
    return deepest;
  }

  #heartbeat(pod: VirtualPod): void {
    if (!pod.isAlive) return;
    this.at(this.now + SECOND * (0.95 + 0.1 * this.#draw()), () => this.#heartbeat(pod));
    const terms = {
      timeoutUs: this.#options.membershipTimeoutUs,
      silentAfterUs: 2.5 * SECOND,
      largeCosts: pod.engine.largeCosts(this.now),
    };
    const { delayUs } = this.#options;
    this.at(this.now + delayUs, () => {
      if (this.storeState === "refusing") {
        this.at(this.now + delayUs, () => pod.engine.membershipFailed(this.now));
        return;
      }
      if (this.storeState === "hanging" || this.storeState === "stopped") {
        this.at(this.now + 50 * MS, () => pod.engine.membershipFailed(this.now));
        return;
      }
      const heard = { epoch: 0, heardAtUs: 0, heardAgoUs: 0 };
      const reply = this.store.heartbeat(this.#storeNow(), pod.recordId, terms, heard);
      this.at(this.now + delayUs, () => {
        pod.engine.membershipChanged(this.now, reply);
        this.#pump(pod);
      });
    });
  }

  /** Runs the engine's tick now or when it asks for it. */
  #pump(pod: VirtualPod): void {
    while (pod.engine.wakeAt <= this.now) {
      for (const effect of pod.engine.tick(this.now, () => this.#draw())) {
        if (effect.kind === "exchange") this.#exchange(pod, effect.batch);
        else if (effect.kind === "call") this.#call(pod, effect.call);
        else {
          pod.held.get(effect.held)?.(effect.decisions);
          pod.held.delete(effect.held);
        }
      }
    }
    const wakeAt = pod.engine.wakeAt;
    if (wakeAt < Number.POSITIVE_INFINITY && pod.isAlive) {
      this.at(Math.ceil(wakeAt), () => this.#pumpIfDue(pod));
    }
  }

  #pumpIfDue(pod: VirtualPod): void {
    if (pod.isAlive && pod.engine.wakeAt <= this.now) this.#pump(pod);
  }

  #exchange(pod: VirtualPod, batch: Batch): void {
    const { delayUs } = this.#options;
    this.calls += 1;
    this.at(this.now + delayUs, () => {
      if (this.storeState === "hanging" || this.storeState === "stopped") return;
      if (this.storeState === "refusing") {
        this.at(this.now + delayUs, () => {
          pod.engine.failed(this.now, batch.lane, batch.seq, "unreachable");
          this.#pump(pod);
        });
        return;
      }
      const reply = this.store.reconcile(this.#storeNow(), pod.recordId, batch);
      this.at(this.now + delayUs, () => {
        if (!pod.isAlive) return;
        pod.engine.replied(this.now, batch.lane, batch.seq, reply);
        this.#pump(pod);
      });
    });
  }

  #call(pod: VirtualPod, call: StoreCall): void {
    const sentAt = this.now;
    this.calls += 1;
    const arrive = (): void => {
      if (this.storeState === "hanging") return;
      if (this.storeState === "stopped") {
        this.#stopped.push(arrive);
        return;
      }
      if (this.storeState === "refusing") {
        this.at(this.now + this.callDelayUs(), () => {
          pod.engine.callFailed(this.now, call.id, "unreachable");
          this.#pump(pod);
        });
        return;
      }
      const reply = this.store.call(this.#storeNow(), call);
      if (this.now - sentAt >= SECOND) return; // its connection was given up
      this.at(this.now + this.callDelayUs(), () => {
        if (!pod.isAlive) return;
        pod.engine.callReplied(this.now, call.id, reply);
        this.#pump(pod);
      });
    };
    this.at(this.now + this.callDelayUs(), arrive);
  }

  /** A stopped store goes on, with all that lies in its buffers. */
  goOn(): void {
    this.storeState = "up";
    for (const arrive of this.#stopped.splice(0)) arrive();
  }

  #storeNow(): InstantUs {
    return Math.floor(this.now + this.storeClockOffsetUs);
  }

  #draw(): number {
    this.#random = (Math.imul(this.#random, 1664525) + 1013904223) >>> 0;
    return this.#random / 2 ** 32;
  }
}
