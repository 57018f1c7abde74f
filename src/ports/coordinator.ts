/**
 * The shared store as the rest of the program sees it: Redis with our scripts, or the embedded
 * one.
 */
import type { Batch, BatchReply, ByName, Roster } from "../core/exchange.ts";
import type { StoreCall, StoreCallReply } from "../core/store-call.ts";
import type { DurationUs } from "../core/units.ts";

/** What can go wrong with the store. None of it is a bug of the caller. */
export type CoordinatorTrouble = "timeout" | "unreachable" | "refused" | "malformed";

/** `refused`: the server answered with an error; `malformed`: its answer made no sense. */
export class CoordinatorError extends Error {
  override readonly name = "CoordinatorError";
  readonly kind: CoordinatorTrouble;

  constructor(kind: CoordinatorTrouble, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

export interface HeartbeatTerms {
  /** A pod silent for this long is dropped. */
  readonly timeoutUs: DurationUs;
  /** A pod silent for this long counts as silent. */
  readonly silentAfterUs: DurationUs;
  /** Names of limits for which this pod saw a large cost; at most `LARGE_COSTS_MAX` are told. */
  readonly largeCosts: readonly string[];
}

/** Names of limits with large costs that one heartbeat may tell. */
export const LARGE_COSTS_MAX = 16;

export interface Coordinator {
  /** Independent batch sequences: 64 on a cluster, few on a single server. */
  readonly lanes: number;
  /**
   * Sends one batch once and resolves with its reply. Safe to call again with the same batch: the
   * store applies a sequence number once.
   *
   * @throws {CoordinatorError} When no usable reply came. The batch may have been applied.
   */
  exchange(batch: Batch): Promise<BatchReply>;
  /**
   * Sends a call that is decided in the store: once and never again, for it may have been applied
   * when no reply came.
   *
   * @throws {CoordinatorError} When no usable reply came.
   */
  call(call: StoreCall): Promise<StoreCallReply>;
  /** Registers or renews this pod and counts the fleet. @throws {CoordinatorError} */
  heartbeat(terms: HeartbeatTerms): Promise<Roster>;
  /** Removes this pod from the fleet. @throws {CoordinatorError} */
  leave(): Promise<void>;
  /** Ends connections; pending calls fail. Safe to call twice. */
  close(): Promise<void>;
}

/** A coordinator that looks at the names of limits only, so that another process can ask it. */
export interface NamedCoordinator extends Coordinator {
  exchange(batch: ByName<Batch>): Promise<BatchReply>;
  call(call: ByName<StoreCall>): Promise<StoreCallReply>;
}
