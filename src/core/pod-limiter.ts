/**
 * The engine of one pod: decides checks from its own buckets and says what to tell the store.
 *
 * It is synchronous and passive. Every call takes the instant, `tick` takes chance as well, and
 * what should happen outside leaves as values ("exchange this batch"). An adapter performs them: the
 * daemon with timers and Redis, the simulator with its virtual clock and network.
 *
 * The adapter's whole duty:
 *   1. call `decide` for checks, `replied`/`failed` for every exchange that ended, `membershipChanged`
 *      when the fleet's size was told;
 *   2. after any call, see that `tick` runs no later than `wakeAt` (at once when it is not later
 *      than now), and perform the effects that it returns.
 */
import type { Check, Decision } from "./decision.ts";
import type { Batch, BatchReply } from "./exchange.ts";
import type { Limit } from "./limit.ts";
import type { Figures } from "./tally.ts";
import type { DurationUs, InstantUs } from "./units.ts";

export interface PodLimiterOptions {
  readonly limits: readonly Limit[];
  /** No store: this pod is the whole fleet and keeps ideal buckets. */
  readonly sole: boolean;
  /** Batch sequences of the coordinator. */
  readonly lanes: number;
  /** A batch unanswered for longer is sent again; the engine raises it to three mean round trips. */
  readonly commandTimeoutUs: DurationUs;
  /** No check is held for longer. */
  readonly decisionTimeoutUs: DurationUs;
  /** Most keys tracked at once; beyond it the longest idle are evicted. */
  readonly keysMax: number;
  /** Tells this pod from others where phases must differ; any string. */
  readonly podId: string;
}

/** The size of the fleet as one source tells it. */
export interface MembershipView {
  /** Pods counted now, this one included. */
  readonly pods: number;
  /** Of these, pods that the store has not heard for a while. */
  readonly silent: number;
}

/** A check that waits for the store; the answer comes as an effect with the same number. */
export interface Held {
  readonly held: number;
}

export type Effect =
  | { readonly kind: "exchange"; readonly batch: Batch }
  | { readonly kind: "answer"; readonly held: number; readonly decisions: readonly Decision[] };

/** Why an exchange brought no reply. */
export type ExchangeTrouble = "timeout" | "unreachable" | "refused" | "malformed";

export class PodLimiter {
  /** When `tick` has something to do; Infinity for never. */
  readonly wakeAt: InstantUs = Number.POSITIVE_INFINITY;

  constructor(_options: PodLimiterOptions, _now: InstantUs) {}

  /** Decides all checks or none; see `Decider.decide`. */
  decide(_now: InstantUs, _checks: readonly Check[]): readonly Decision[] | Held {
    throw new Error("pending");
  }

  /** Debits or refunds unconditionally; see `Decider.report`. */
  report(_now: InstantUs, _check: Check): Decision {
    throw new Error("pending");
  }

  /** @param draw - A fresh number uniform in [0, 1) at each call. */
  tick(_now: InstantUs, _draw: () => number): Effect[] {
    throw new Error("pending");
  }

  /** A reply to the batch `seq` of `lane`. Late, repeated and foreign replies are recognised. */
  replied(_now: InstantUs, _lane: number, _seq: number, _reply: BatchReply): void {}

  /** An exchange of the batch `seq` of `lane` failed; it will be tried again. */
  failed(_now: InstantUs, _lane: number, _seq: number, _trouble: ExchangeTrouble): void {}

  /** The fleet was counted (heartbeat answered, static configuration, ...). */
  membershipChanged(_now: InstantUs, _view: MembershipView): void {}

  /** A heartbeat failed: the store is away as far as idle lanes can tell. */
  membershipFailed(_now: InstantUs): void {}

  /** Puts other limits in force; see docs/design.md for what happens to live buckets. */
  configChanged(_now: InstantUs, _limits: readonly Limit[]): void {}

  /**
   * Begins a graceful leave: everything unreported becomes due, stock is given back and no more is
   * asked for. The caller ticks until `settled`, then leaves the membership.
   */
  beginLeave(_now: InstantUs): void {}

  /** Nothing is unreported and no batch is unanswered. */
  get settled(): boolean {
    throw new Error("pending");
  }

  figures(_now: InstantUs): Figures {
    throw new Error("pending");
  }
}
