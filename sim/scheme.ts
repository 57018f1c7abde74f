/**
 * What a rate limiting scheme is to the world: the engine of this project, every baseline and every
 * ablation plug in here and see the same arrivals, network and faults.
 *
 * A scheme has at most one program on the store host (`store`) and one node per pod (`node`). Nodes
 * know nothing of each other; what they share goes through `NodeContext.call`, which the world
 * delays, loses, repeats or refuses like any network would.
 */
import type { Batch, BatchReply } from "../src/core/exchange.ts";
import type { Limit } from "../src/core/limit.ts";
import type { StoreCall as DecidingCall, StoreCallReply } from "../src/core/store-call.ts";
import type { DurationUs, InstantUs, Tokens } from "../src/core/units.ts";
import type { CoordinatorTrouble } from "../src/ports/coordinator.ts";
import type { Timer } from "./event-loop.ts";
import type { Prng } from "./prng.ts";

/** One limit and key of a request; `limit` is the place in `Scenario.limits`. */
export interface SimCheck {
  readonly limit: number;
  readonly key: string;
  readonly cost: Tokens;
}

/** A node's answer to a request, over all its checks. */
export interface Answer {
  readonly allowed: boolean;
  /** Wait advised to the caller; 0 when allowed or when the scheme gives no advice. */
  readonly retryAfterUs: DurationUs;
  /** Decided without the store although the scheme would have needed it. */
  readonly isFallback?: boolean;
}

export const ALLOWED: Answer = { allowed: true, retryAfterUs: 0 };
export const DENIED: Answer = { allowed: false, retryAfterUs: 0 };

/** How a call to the store ended for the caller. */
export type CallOutcome<Reply> =
  | { readonly ok: true; readonly reply: Reply }
  | { readonly ok: false; readonly trouble: CoordinatorTrouble };

/** One trip to the store host. */
export interface StoreCall<Store, Reply> {
  /** Keys touched, for the count of key-operations. */
  readonly keys: readonly string[];
  /** Bytes of request and reply, roughly; 0 when nobody counts them. */
  readonly bytes: number;
  /** The caller gives up after this. */
  readonly timeoutUs: DurationUs;
  /**
   * Runs on the store host when the request arrives, again when the network repeats it, and with
   * the store's own clock. Must be one atomic step, like a script. A promise (a real server) holds
   * virtual time.
   */
  run(store: Store, storeNowUs: InstantUs): Reply | Promise<Reply>;
  /** Runs on the pod, exactly once unless the pod died: the first reply, or the trouble. */
  done(outcome: CallOutcome<Reply>): void;
}

/** Puts a copy of the store's state back. */
export type Restore = () => void | Promise<void>;

/** State on the store host. */
export interface StoreProgram {
  /** Copies the state; the returned function puts the copy back (failover to an older replica). */
  snapshot(): Restore | Promise<Restore>;
  /** Forgets everything (restart without persistence). */
  clear(): void | Promise<void>;
}

/** How a node learns how many pods there are when it does not count them by itself. */
export interface FleetLag {
  /** Delay until more pods are noticed. */
  readonly upUs: DurationUs;
  /** Delay until fewer pods are noticed. */
  readonly downUs: DurationUs;
}

/** A pod's surroundings. Everything here stops working, silently, when the pod dies. */
export interface NodeContext<Store> {
  /** Number of the pod, from 0, never used twice within a run except by `bounce`. */
  readonly pod: number;
  /** Counts the lives of one pod, from 0. */
  readonly incarnation: number;
  /** Limits in force at the start, in the order of `SimCheck.limit`. */
  readonly limits: readonly Limit[];
  readonly random: Prng;
  /** Monotonic time of this pod; drifts, pauses with its machine, unrelated to other pods. */
  nowUs(): InstantUs;
  /** Runs `run` when this pod's clock has advanced by `delayUs`; late when the pod stalls. */
  after(delayUs: DurationUs, run: () => void): Timer;
  cancel(timer: Timer): void;
  call<Reply>(call: StoreCall<Store, Reply>): void;
  /** Pods that serve now, by an all-knowing source; dead and leaving ones are not counted. */
  livePods(): number;
  /** Tells the number of pods now and after each change, with the given delays. */
  watchFleet(lag: FleetLag, told: (pods: number) => void): void;
}

/** One pod's part of a scheme. */
export interface SchemeNode {
  /** Decides; `answer` is called exactly once, at once or later. */
  request(checks: readonly SimCheck[], answer: (answer: Answer) => void): void;
  /** Other limits are in force from now on, same order. */
  configChanged?(limits: readonly Limit[]): void;
  /**
   * The pod stops in good order: report what is owed, then call `left`. New requests go elsewhere.
   */
  leave?(left: () => void): void;
  /** What this node knows about its own state, for metrics and invariants. */
  inspect?(): NodeFigures;
}

/** Optional self-knowledge of a node. A scheme fills what it has. */
export interface NodeFigures {
  /** Pods that the node divides by. */
  readonly pods?: number;
  /** Mean share of the rate over its keys, 0 to 1. */
  readonly share?: number;
  /** Tokens admitted and not yet acknowledged by the store. */
  readonly unreported?: Tokens;
  /** Debt that the store had to forgive, tokens. */
  readonly clipped?: Tokens;
  /** The node decides without the store. */
  readonly isolated?: boolean;
}

export interface SchemeFigures {
  /** Calls that the store recognised as repeated. */
  readonly duplicates: number;
  /** Stock registered in the ledger, tokens over all keys. */
  readonly ledger: Tokens;
}

/** One run of a scheme: its store and its nodes. */
export interface SchemeRun<Store extends StoreProgram = StoreProgram> {
  /** A scheme without a shared store still gives an empty program. */
  readonly store: Store;
  node(context: NodeContext<Store>): SchemeNode;
  /** What the store knows, for metrics. */
  inspect?(): SchemeFigures;
  /** Ends servers and connections that the run started. */
  close?(): Promise<void>;
}

export interface Scheme<Store extends StoreProgram = StoreProgram> {
  /** Short, kebab-case, unique: the name in tables and on the command line. */
  readonly name: string;
  /** The rule in one sentence, for reports. */
  readonly rule: string;
  /** Where the rule was taken from. */
  readonly source: string;
  start(setup: SchemeSetup): SchemeRun<Store> | Promise<SchemeRun<Store>>;
}

export interface SchemeSetup {
  readonly limits: readonly Limit[];
  readonly random: Prng;
  /** How pods are counted in this scenario; see `Scenario.membership`. */
  readonly membership: Membership;
  /** What every node believes N to be, as a factor of the truth; 1 for the truth. */
  readonly podsFactor: number;
  /** Told of every batch that the store applied, for invariants; baselines need not call it. */
  readonly observer?: ExchangeObserver;
}

/** Sees what goes over the store's counter, on the store host. */
export interface ExchangeObserver {
  exchanged(pod: number, incarnation: number, batch: Batch, reply: BatchReply): void;
  /** The store decided a call of leased or exact limits. */
  called(pod: number, incarnation: number, call: DecidingCall, reply: StoreCallReply): void;
  /** A pod was told by a heartbeat how many pods there are. */
  counted(pod: number, incarnation: number, pods: number): void;
}

/**
 * `store`: only by heartbeats through the store. `listed`: an independent source (Kubernetes, DNS)
 * tells it as well.
 */
export type Membership = "store" | "listed";

/** The program of schemes that share nothing. */
export const NO_STORE: StoreProgram = { snapshot: () => () => {}, clear: () => {} };
