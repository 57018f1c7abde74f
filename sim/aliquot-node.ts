/**
 * One pod of this project in the simulator: the very `PodLimiter` of the product, driven as the
 * daemon drives it. The duties of the driver: wake the engine when it wants, perform its effects,
 * send heartbeats with the same terms and timeouts as the daemon. It has no opinion about tokens.
 */
import type { Check, Decision } from "../src/core/decision.ts";
import { type Batch, ENTRY_FIELDS, REPLY_FIELDS } from "../src/core/exchange.ts";
import type { Limit } from "../src/core/limit.ts";
import { PodLimiter, type PodLimiterOptions } from "../src/core/pod-limiter.ts";
import { LEASE_REPLY_FIELDS, type StoreCall, type StoreCallReply } from "../src/core/store-call.ts";
import type { DurationUs, InstantUs } from "../src/core/units.ts";
import type { HeartbeatTerms } from "../src/ports/coordinator.ts";
import type { HeartbeatReply } from "../src/store/embedded/embedded-store.ts";
import { LaneEar } from "../src/store/lane-ear.ts";
import { type AliquotStore, memberOf } from "./aliquot-store.ts";
import { answerOf } from "./answer-of.ts";
import type { Timer } from "./event-loop.ts";
import type {
  Answer,
  NodeContext,
  NodeFigures,
  SchemeNode,
  SchemeSetup,
  SimCheck,
} from "./scheme.ts";

/** What of the configuration a pod's driver needs; the defaults are those of the product. */
export interface NodeTiming {
  readonly heartbeatUs: DurationUs;
  readonly membership: HeartbeatTerms;
  readonly commandTimeoutUs: DurationUs;
  readonly decisionTimeoutUs: DurationUs;
  readonly drainTimeoutUs: DurationUs;
  readonly keysMax: number;
}

export const DEFAULT_TIMING: NodeTiming = {
  heartbeatUs: 1_000_000,
  membership: { timeoutUs: 5_000_000, silentAfterUs: 2_500_000, largeCosts: [] },
  commandTimeoutUs: 50_000,
  decisionTimeoutUs: 10_000,
  drainTimeoutUs: 10_000_000,
  keysMax: 100_000,
};
/** How soon an independent source notices a pod. */
const LISTING_LAG = { upUs: 500_000, downUs: 500_000 };
/** Bytes of the frame around the numbers of a call and its reply, roughly. */
const FRAME_BYTES = 150;

/** What of the engine its driver calls; wrapped by tests that plant bugs. */
export type Engine = Pick<
  PodLimiter,
  | "wakeAt"
  | "decide"
  | "tick"
  | "replied"
  | "failed"
  | "callReplied"
  | "callFailed"
  | "membershipChanged"
  | "membershipListed"
  | "membershipFailed"
  | "configChanged"
  | "beginLeave"
  | "settled"
  | "figures"
  | "largeCosts"
>;

/** Replaceable parts of a node; the defaults are the product. */
export interface NodeParts {
  readonly engine?: (options: PodLimiterOptions, now: InstantUs) => Engine;
  /** Changes the limits that every node gets. */
  readonly limits?: (limits: readonly Limit[]) => readonly Limit[];
  readonly timing?: NodeTiming;
}

export class AliquotNode implements SchemeNode {
  readonly #context: NodeContext<AliquotStore>;
  readonly #setup: SchemeSetup;
  readonly #changeLimits: (limits: readonly Limit[]) => readonly Limit[];
  readonly #timing: NodeTiming;
  readonly #engine: Engine;
  readonly #held: Map<number, (answer: Answer) => void> = new Map();
  readonly #ear: LaneEar = new LaneEar();
  #beats = 0;
  readonly #draw: () => number;
  #limits: readonly Limit[];
  #timer: Timer | undefined;
  #timerAtUs: InstantUs = Number.POSITIVE_INFINITY;
  #left: (() => void) | undefined;
  #leaving = false;

  constructor(
    context: NodeContext<AliquotStore>,
    store: AliquotStore,
    setup: SchemeSetup,
    parts: NodeParts,
  ) {
    this.#context = context;
    this.#setup = setup;
    this.#timing = parts.timing ?? DEFAULT_TIMING;
    this.#changeLimits = parts.limits ?? ((limits) => limits);
    this.#limits = this.#changeLimits(context.limits);
    const options: PodLimiterOptions = {
      limits: this.#limits,
      sole: false,
      lanes: store.backend.lanes,
      ...this.#timing,
      podId: `pod-${context.pod}`,
    };
    const build = parts.engine ?? ((given, now) => new PodLimiter(given, now));
    this.#engine = build(options, context.nowUs());
    this.#draw = () => context.random.draw();
    if (setup.membership === "listed") {
      context.watchFleet(LISTING_LAG, (pods) => {
        this.#engine.membershipListed(this.#context.nowUs(), this.#believed(pods));
        this.#arm();
      });
    }
    this.#heartbeat();
    this.#arm();
  }

  request(checks: readonly SimCheck[], answer: (answer: Answer) => void): void {
    const asked: Check[] = checks.map(({ limit, key, cost }) => ({
      limit: this.#limits[limit] as Limit,
      key,
      cost,
    }));
    const result = this.#engine.decide(this.#context.nowUs(), asked);
    if ("held" in result) this.#held.set(result.held, answer);
    else answer(answerOf(result));
    this.#arm();
  }

  configChanged(limits: readonly Limit[]): void {
    this.#limits = this.#changeLimits(limits);
    this.#engine.configChanged(this.#context.nowUs(), this.#limits);
    this.#arm();
  }

  leave(left: () => void): void {
    this.#leaving = true;
    this.#left = left;
    this.#engine.beginLeave(this.#context.nowUs());
    this.#context.after(this.#timing.drainTimeoutUs, () => this.#goodbye());
    this.#arm();
  }

  inspect(): NodeFigures {
    const figures = this.#engine.figures(this.#context.nowUs());
    let [share, unreported, clipped] = [0, 0, 0];
    for (const limit of figures.limits) {
      share += limit.share / figures.limits.length;
      unreported += limit.unreconciled;
      clipped += limit.tally.clipped;
    }
    const isolated = figures.fallbackActive;
    return { pods: figures.pods, share, unreported, clipped, isolated };
  }

  /** After any call of the engine: one timer, never later than the engine wants. */
  #arm(): void {
    if (this.#leaving && this.#engine.settled) this.#goodbye();
    const { wakeAt } = this.#engine;
    if (wakeAt >= this.#timerAtUs) return;
    if (this.#timer !== undefined) this.#context.cancel(this.#timer);
    this.#timerAtUs = wakeAt;
    const waitUs = Math.max(0, wakeAt - this.#context.nowUs());
    this.#timer = this.#context.after(waitUs, () => {
      this.#timer = undefined;
      this.#timerAtUs = Number.POSITIVE_INFINITY;
      this.#tick();
    });
  }

  #tick(): void {
    const now = this.#context.nowUs();
    if (now >= this.#engine.wakeAt) {
      for (const effect of this.#engine.tick(now, this.#draw)) {
        if (effect.kind === "exchange") this.#exchange(effect.batch);
        else if (effect.kind === "call") this.#call(effect.call);
        else this.#answer(effect.held, effect.decisions);
      }
    }
    this.#arm();
  }

  #answer(held: number, decisions: readonly Decision[]): void {
    const answer = this.#held.get(held);
    if (answer === undefined) throw new Error(`the engine answered check ${held}, not held`);
    this.#held.delete(held);
    answer(answerOf(decisions));
  }

  #exchange(batch: Batch): void {
    const { keys, limits } = batch;
    const sentUs = this.#context.nowUs();
    this.#context.call({
      keys: limits.length === 1 ? keys : keys.map((key, i) => `${limits[i]?.name} ${key}`),
      bytes: FRAME_BYTES + keys.length * 8 * (ENTRY_FIELDS + REPLY_FIELDS),
      timeoutUs: this.#timing.commandTimeoutUs,
      run: (store, nowUs) => store.reconcile(nowUs, this.#context, batch),
      done: (outcome) => {
        const now = this.#context.nowUs();
        if (outcome.ok) {
          const { reply } = outcome;
          if (batch.lane === 0) this.#ear.heard(reply.epoch, reply.nowUs, sentUs);
          this.#engine.replied(now, batch.lane, batch.seq, reply);
        } else {
          this.#engine.failed(now, batch.lane, batch.seq, outcome.trouble);
        }
        this.#arm();
      },
    });
  }

  /** Calls are sent once: a client that never repeats over a connection that cannot. */
  #call(call: StoreCall): void {
    const { keys, limits } = call;
    const sentUs = this.#context.nowUs();
    let only: StoreCallReply | Promise<StoreCallReply> | undefined;
    this.#context.call({
      keys: limits.length === 1 ? keys : keys.map((key, i) => `${limits[i]?.name} ${key}`),
      bytes: FRAME_BYTES + 8 * (call.entries.length + keys.length * LEASE_REPLY_FIELDS),
      timeoutUs: this.#timing.commandTimeoutUs,
      run: (store, nowUs) => {
        only ??= store.call(nowUs, this.#context, call);
        return only;
      },
      done: (outcome) => {
        const now = this.#context.nowUs();
        if (outcome.ok) {
          const { reply } = outcome;
          if (call.lane === 0) this.#ear.heard(reply.epoch, reply.nowUs, sentUs);
          this.#engine.callReplied(now, call.id, reply);
        } else this.#engine.callFailed(now, call.id, outcome.trouble);
        this.#arm();
      },
    });
  }

  #heartbeat(): void {
    if (this.#leaving) return;
    const sentUs = this.#context.nowUs();
    const member = memberOf(this.#context.pod, this.#context.incarnation);
    const terms = { ...this.#timing.membership, largeCosts: this.#engine.largeCosts(sentUs) };
    this.#context.call({
      keys: [],
      bytes: FRAME_BYTES,
      timeoutUs: this.#timing.commandTimeoutUs,
      run: (store, nowUs) => store.backend.heartbeat(nowUs, member, terms, this.#ear.at(sentUs)),
      done: (outcome) => {
        if (this.#leaving) return;
        if (outcome.ok) {
          this.#ear.heard(outcome.reply.epoch, outcome.reply.nowUs, sentUs);
          this.#counted(outcome.reply);
        } else {
          this.#engine.membershipFailed(this.#context.nowUs());
        }
        this.#arm();
      },
    });
    // As in the daemon, the second comes soon after the first.
    const nominalUs = this.#timing.heartbeatUs * (this.#beats === 0 ? 0.2 : 1);
    this.#beats += 1;
    const delayUs = nominalUs * (0.9 + 0.2 * this.#draw());
    this.#context.after(Math.round(delayUs), () => this.#heartbeat());
  }

  #counted(roster: HeartbeatReply): void {
    const pods = this.#believed(roster.pods);
    this.#setup.observer?.counted(this.#context.pod, this.#context.incarnation, pods);
    this.#engine.membershipChanged(this.#context.nowUs(), {
      pods,
      silent: Math.min(roster.silent, roster.pods - 1),
      band: roster.band,
      largeCosts: roster.largeCosts,
    });
  }

  #believed(pods: number): number {
    return Math.max(1, Math.round(pods * this.#setup.podsFactor));
  }

  #goodbye(): void {
    const left = this.#left;
    if (left === undefined) return;
    this.#left = undefined;
    this.#context.call({
      keys: [],
      bytes: FRAME_BYTES,
      timeoutUs: this.#timing.commandTimeoutUs,
      run: (store) => store.backend.leave(memberOf(this.#context.pod, this.#context.incarnation)),
      done: left,
    });
  }
}
