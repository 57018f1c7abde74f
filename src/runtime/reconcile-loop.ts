/**
 * Joins the passive engine to the world: the `Decider` of the front doors on one side, the
 * `Coordinator` on the other, and one timer between them.
 *
 * The engine says what it wants (`wakeAt`, effects) and this adapter obeys; it has no opinion about
 * tokens, retries or timeouts. Three rules make it safe:
 *   - nothing is awaited between a check and its answer unless the engine asks to hold it;
 *   - every exchange that ended is told to the engine, also a late one, whose batch was emitted
 *     again meanwhile: the engine tells them apart by lane and sequence number;
 *   - whatever the coordinator does is trouble and survived, what the engine throws is a bug and
 *     goes to `onFault`, so that no `catch` of a front door can hide it.
 */
import type { Check, Decision } from "../core/decision.ts";
import type { Effect, ExchangeTrouble, Held, MembershipView } from "../core/effect.ts";
import type { Batch, BatchReply } from "../core/exchange.ts";
import type { Limit } from "../core/limit.ts";
import type { LimitStanding } from "../core/mode-choice.ts";
import type { StoreCall } from "../core/store-call.ts";
import type { Counts, Figures } from "../core/tally.ts";
import type { DurationUs, InstantUs } from "../core/units.ts";
import type { Clock } from "../ports/clock.ts";
import { type Coordinator, CoordinatorError } from "../ports/coordinator.ts";
import type { Decider } from "../ports/decider.ts";
import type { Random } from "../ports/random.ts";
import { attempt, attemptCall, troubleOf } from "./attempt.ts";
import type { Engine } from "./engine.ts";
import { WakeTimer } from "./wake-timer.ts";

/**
 * Attempts of one lane that may be unanswered at once. The engine emits a batch again after a
 * timeout, while the coordinator may still hold the first attempt; a coordinator that never ends
 * its calls must not make them pile up. Beyond it an attempt counts as timed out at once.
 */
export const PENDING_PER_LANE_MAX = 8;

export interface ReconcileLoopOptions {
  readonly engine: Engine;
  readonly limits: readonly Limit[];
  /** Absent for a pod without a store; the engine then emits no exchange. */
  readonly coordinator: Coordinator | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** The engine threw: a bug. The daemon logs it and ends the process. */
  readonly onFault: (error: unknown) => void;
  /** Told how every call of the store ended, heartbeats included. */
  readonly onStoreCall?: (outcome: "ok" | ExchangeTrouble, error: unknown) => void;
  /** Told how long every exchange took that brought a reply. */
  readonly onReply?: (took: DurationUs) => void;
}

type Answer = (decisions: readonly Decision[]) => void;

export class ReconcileLoop implements Decider {
  private readonly engine: Engine;
  private readonly coordinator: Coordinator | undefined;
  private readonly clock: Clock;
  private readonly draw: () => number;
  private readonly onFault: (error: unknown) => void;
  private readonly onStoreCall: (outcome: "ok" | ExchangeTrouble, error: unknown) => void;
  private readonly onReply: (took: DurationUs) => void;
  private readonly timer: WakeTimer;
  private readonly answers = new Map<number, Answer>();
  private readonly pending = new Map<number, number>();
  private configured: readonly Limit[] = [];
  private byName: ReadonlyMap<string, Limit> = new Map();
  private whenSettled: (() => void) | undefined;

  constructor(options: ReconcileLoopOptions) {
    this.engine = options.engine;
    this.coordinator = options.coordinator;
    this.clock = options.clock;
    this.draw = () => options.random.draw();
    this.onFault = options.onFault;
    this.onStoreCall = options.onStoreCall ?? (() => {});
    this.onReply = options.onReply ?? (() => {});
    this.timer = new WakeTimer(options.clock, () => this.tick());
    this.index(options.limits);
  }

  /** Begins to wake the engine when it wants. */
  start(): void {
    this.timer.arm(this.engine.wakeAt);
  }

  /** Stops the timer for good. Held checks stay held: drain or close the front doors first. */
  stop(): void {
    this.timer.stop();
  }

  limit(name: string): Limit | undefined {
    return this.byName.get(name);
  }

  limits(): readonly Limit[] {
    return this.configured;
  }

  standing(limit: Limit): LimitStanding {
    return this.run(() => this.engine.standing(limit));
  }

  /** Limits for which this pod lately saw costs that are a large part of the burst. */
  largeCosts(): readonly string[] {
    return this.run(() => this.engine.largeCosts(this.clock.monotonicUs()));
  }

  decide(checks: readonly Check[]): readonly Decision[] | Promise<readonly Decision[]> {
    const result = this.decideOrHold(checks);
    if (!("held" in result)) return result;
    return this.whenAnswered(result.held);
  }

  /** As `run` does, but without a closure for each check. */
  private decideOrHold(checks: readonly Check[]): readonly Decision[] | Held {
    try {
      const result = this.engine.decide(this.clock.monotonicUs(), checks);
      this.proceed();
      return result;
    } catch (error) {
      throw this.stopped(error);
    }
  }

  /** Apart, so that only a check that waits pays for the closure. */
  private whenAnswered(held: number): Promise<readonly Decision[]> {
    return new Promise((resolve) => this.answers.set(held, resolve));
  }

  report(check: Check): Decision {
    return this.run(() => this.engine.report(this.clock.monotonicUs(), check));
  }

  membershipChanged(view: MembershipView): void {
    this.onStoreCall("ok", undefined);
    this.run(() => this.engine.membershipChanged(this.clock.monotonicUs(), view));
  }

  /** @param pods - Undefined when the source that lists them has been out of reach for a while. */
  membershipListed(pods: number | undefined): void {
    this.run(() => this.engine.membershipListed(this.clock.monotonicUs(), pods));
  }

  membershipFailed(error: unknown): void {
    this.onStoreCall(troubleOf(error), error);
    this.run(() => this.engine.membershipFailed(this.clock.monotonicUs()));
  }

  /** Puts other limits in force, for the front doors and the engine at the same instant. */
  configChanged(limits: readonly Limit[]): void {
    this.run(() => this.engine.configChanged(this.clock.monotonicUs(), limits));
    this.index(limits);
  }

  counts(): Counts {
    return this.run(() => this.engine.counts(this.clock.monotonicUs()));
  }

  figures(): Figures {
    return this.run(() => this.engine.figures(this.clock.monotonicUs()));
  }

  /** Checks that wait for the store now. */
  get heldChecks(): number {
    return this.answers.size;
  }

  /** Begins the leave and resolves once the engine has nothing left to tell; may be never. */
  settle(): Promise<void> {
    const settled = new Promise<void>((resolve) => {
      this.whenSettled = resolve;
    });
    this.run(() => this.engine.beginLeave(this.clock.monotonicUs()));
    return settled;
  }

  /** Every call into the engine: what it throws is a fault, what it wants next is armed. */
  private run<T>(call: () => T): T {
    try {
      const result = call();
      this.proceed();
      return result;
    } catch (error) {
      throw this.stopped(error);
    }
  }

  private proceed(): void {
    this.timer.arm(this.engine.wakeAt);
    if (this.whenSettled !== undefined && this.engine.settled) this.whenSettled();
  }

  private stopped(fault: unknown): unknown {
    this.timer.stop();
    this.onFault(fault);
    return fault;
  }

  private tick(): void {
    let effects: Effect[];
    try {
      effects = this.run(() => this.engine.tick(this.clock.monotonicUs(), this.draw));
    } catch {
      return; // already told to onFault; the timer has no caller to tell
    }
    for (const effect of effects) {
      if (effect.kind === "exchange") this.exchange(effect.batch);
      else if (effect.kind === "call") this.call(effect.call);
      else this.answer(effect.held, effect.decisions);
    }
  }

  private answer(held: number, decisions: readonly Decision[]): void {
    const resolve = this.answers.get(held);
    if (resolve === undefined) {
      this.onFault(new Error(`the engine answered check ${held}, which is not held`));
      return;
    }
    this.answers.delete(held);
    resolve(decisions);
  }

  private exchange(batch: Batch): void {
    if (this.coordinator === undefined) {
      this.onFault(new Error("the engine wants an exchange, but there is no coordinator"));
      return;
    }
    const unanswered = this.pending.get(batch.lane) ?? 0;
    if (unanswered >= PENDING_PER_LANE_MAX) {
      const error = new CoordinatorError("timeout", `${unanswered} attempts are unanswered`);
      this.failed(batch, error);
      return;
    }
    this.pending.set(batch.lane, unanswered + 1);
    const sentAt = this.clock.monotonicUs();
    attempt(this.coordinator, batch)
      .then(
        (reply) => this.replied(batch, sentAt, reply),
        (error: unknown) => {
          this.ended(batch.lane);
          this.failed(batch, error);
        },
      )
      .catch(() => {}); // only the engine can have thrown, and `run` has told onFault
  }

  /** A call is made once: it may have been applied, so nobody repeats it. */
  private call(call: StoreCall): void {
    if (this.coordinator === undefined) {
      this.onFault(new Error("the engine wants to call the store, but there is no coordinator"));
      return;
    }
    const sentAt = this.clock.monotonicUs();
    attemptCall(this.coordinator, call)
      .then(
        (reply) => {
          const now = this.clock.monotonicUs();
          this.onStoreCall("ok", undefined);
          this.onReply(now - sentAt);
          this.run(() => this.engine.callReplied(now, call.id, reply));
        },
        (error: unknown) => {
          const trouble = troubleOf(error);
          this.onStoreCall(trouble, error);
          this.run(() => this.engine.callFailed(this.clock.monotonicUs(), call.id, trouble));
        },
      )
      .catch(() => {}); // only the engine can have thrown, and `run` has told onFault
  }

  private replied(batch: Batch, sentAt: InstantUs, reply: BatchReply): void {
    this.ended(batch.lane);
    const now = this.clock.monotonicUs();
    this.onStoreCall("ok", undefined);
    this.onReply(now - sentAt);
    this.run(() => this.engine.replied(now, batch.lane, batch.seq, reply));
  }

  private failed(batch: Batch, error: unknown): void {
    const trouble = troubleOf(error);
    this.onStoreCall(trouble, error);
    this.run(() => this.engine.failed(this.clock.monotonicUs(), batch.lane, batch.seq, trouble));
  }

  private ended(lane: number): void {
    this.pending.set(lane, (this.pending.get(lane) ?? 1) - 1);
  }

  private index(limits: readonly Limit[]): void {
    this.configured = limits;
    this.byName = new Map(limits.map((limit) => [limit.name, limit]));
  }
}
