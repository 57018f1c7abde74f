/**
 * What the primary and its workers say to each other.
 *
 * The primary is the process that was started: it opens the listeners, follows the configuration
 * and answers probes. A worker decides. They speak over the channel that Node gives a forked
 * process, in the structured form that keeps typed arrays and maps.
 */
import type { Batch, BatchReply, ByName, Roster } from "../core/exchange.ts";
import type { StoreCall, StoreCallReply } from "../core/store-call.ts";
import type { CoordinatorTrouble, HeartbeatTerms } from "../ports/coordinator.ts";
import type { WorkerReport } from "./worker-report.ts";

/** The answer to a worker's first word. `T` is what a configuration is made of. */
export interface Begin<T> {
  readonly kind: "begin";
  /** Of this worker, from 0. */
  readonly index: number;
  /** The configuration that the primary was started with, and then what it has put in force. */
  readonly texts: readonly T[];
  /** Under which name the primary binds each Unix socket, by path. */
  readonly boundAs: ReadonlyMap<string, string>;
}

/** What a worker asks of the store that the primary holds. */
export type StoreQuestion =
  | { readonly ask: "exchange"; readonly batch: ByName<Batch> }
  | { readonly ask: "call"; readonly call: ByName<StoreCall> }
  | { readonly ask: "heartbeat"; readonly terms: HeartbeatTerms }
  | { readonly ask: "leave" };

export type StoreAnswer =
  | { readonly told: BatchReply | StoreCallReply | Roster | undefined }
  | { readonly trouble: CoordinatorTrouble; readonly message: string };

export type ToWorker<T> =
  | Begin<T>
  /** Another state of the files that was found good. */
  | { readonly kind: "configure"; readonly texts: T }
  /** Asks for a whole report. */
  | { readonly kind: "report"; readonly id: number }
  | { readonly kind: "stored"; readonly id: number; readonly answer: StoreAnswer }
  | { readonly kind: "stop" };

/** Where a worker's listeners are, as the greeting names them. */
export interface Addresses {
  readonly httpTcp?: string;
  readonly httpSocket?: string;
  readonly grpcTcp?: string;
  readonly grpcSocket?: string;
  readonly respTcp?: string;
  readonly respSocket?: string;
}

export type ToPrimary =
  /** It listens; what was sent before is lost. The first message to it is the answer. */
  | { readonly kind: "hello" }
  /** Every listener is open and the first join was tried. */
  | { readonly kind: "up"; readonly addresses: Addresses; readonly report: WorkerReport }
  /** It cannot start; the message is a sentence for the operator. */
  | { readonly kind: "failed"; readonly message: string }
  /** Once a second, and when asked (with the id of the question). */
  | { readonly kind: "report"; readonly id?: number; readonly report: WorkerReport }
  | { readonly kind: "store"; readonly id: number; readonly question: StoreQuestion };
