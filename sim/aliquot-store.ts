/**
 * The store of this project as the simulator's program on the store host: any backend that follows
 * the store's rules with time as an argument, and the count of what the network repeated.
 */
import type { Batch, BatchReply } from "../src/core/exchange.ts";
import type { StoreCall, StoreCallReply } from "../src/core/store-call.ts";
import type { InstantUs } from "../src/core/units.ts";
import type { HeartbeatTerms } from "../src/ports/coordinator.ts";
import { EmbeddedStore, type HeartbeatReply } from "../src/store/embedded/embedded-store.ts";
import type { Heard } from "../src/store/lane-ear.ts";
import type { NodeContext, Restore, SchemeFigures, SchemeSetup, StoreProgram } from "./scheme.ts";

/** What the engine's driver needs of a store; time and pod are arguments. */
export interface StoreBackend {
  readonly lanes: number;
  reconcile(nowUs: InstantUs, podRecordId: string, batch: Batch): BatchReply | Promise<BatchReply>;
  call(
    nowUs: InstantUs,
    podRecordId: string,
    call: StoreCall,
  ): StoreCallReply | Promise<StoreCallReply>;
  heartbeat(
    nowUs: InstantUs,
    member: string,
    terms: HeartbeatTerms,
    heard: Heard,
  ): HeartbeatReply | Promise<HeartbeatReply>;
  leave(member: string): void | Promise<void>;
  snapshot(): Restore | Promise<Restore>;
  clear(): void | Promise<void>;
  /** Ledger over all keys, where it can be read. */
  ledger?(): number;
  close?(): Promise<void>;
}

/** Batch sequences towards a single Redis server. */
const SINGLE_SERVER_LANES = 4;

/**
 * The embedded store as a backend; with as many lanes as a single Redis server has unless given.
 */
export function embeddedBackend(
  store: EmbeddedStore = new EmbeddedStore({ lanes: SINGLE_SERVER_LANES }),
): StoreBackend {
  const names: Map<string, readonly [string, string]> = new Map();
  return {
    lanes: store.lanes,
    reconcile(nowUs, podRecordId, batch) {
      batch.keys.forEach((key, i) => {
        const limit = batch.limits[i]?.name ?? "";
        names.set(`${limit} ${key}`, [limit, key]);
      });
      return store.reconcile(nowUs, podRecordId, batch);
    },
    call: (nowUs, _podRecordId, call) => store.call(nowUs, call),
    heartbeat: (nowUs, member, terms, heard) => store.heartbeat(nowUs, member, terms, heard),
    leave: (member) => store.leave(member),
    snapshot() {
      const copy = store.snapshot();
      return () => store.restore(copy);
    },
    clear: () => store.clear(),
    ledger() {
      let out = 0;
      for (const [limit, key] of names.values()) {
        const value = store.keyValue(limit, key);
        out += (value?.[LEDGER_NOW] ?? 0) + (value?.[LEDGER_PAST] ?? 0);
      }
      return out;
    },
  };
}

/** Places of the two slots of the ledger in the stored value. */
const LEDGER_NOW = 8;
const LEDGER_PAST = 9;

/** The program on the store host: a backend, and the count of what the network repeated. */
export class AliquotStore implements StoreProgram {
  readonly backend: StoreBackend;
  readonly #setup: SchemeSetup;
  #duplicates = 0;

  constructor(backend: StoreBackend, setup: SchemeSetup) {
    this.backend = backend;
    this.#setup = setup;
  }

  reconcile(
    nowUs: InstantUs,
    context: NodeContext<AliquotStore>,
    batch: Batch,
  ): BatchReply | Promise<BatchReply> {
    const reply = this.backend.reconcile(nowUs, memberOf(context.pod, context.incarnation), batch);
    if (reply instanceof Promise)
      return reply.then((settled) => this.#seen(context, batch, settled));
    return this.#seen(context, batch, reply);
  }

  call(
    nowUs: InstantUs,
    context: NodeContext<AliquotStore>,
    call: StoreCall,
  ): StoreCallReply | Promise<StoreCallReply> {
    const { pod, incarnation } = context;
    const seen = (reply: StoreCallReply): StoreCallReply => {
      this.#setup.observer?.called(pod, incarnation, call, reply);
      return reply;
    };
    const reply = this.backend.call(nowUs, memberOf(pod, incarnation), call);
    return reply instanceof Promise ? reply.then(seen) : seen(reply);
  }

  snapshot(): Restore | Promise<Restore> {
    return this.backend.snapshot();
  }

  clear(): void | Promise<void> {
    return this.backend.clear();
  }

  figures(): SchemeFigures {
    return { duplicates: this.#duplicates, ledger: this.backend.ledger?.() ?? 0 };
  }

  #seen(context: NodeContext<AliquotStore>, batch: Batch, reply: BatchReply): BatchReply {
    if (reply.duplicate) this.#duplicates += 1;
    this.#setup.observer?.exchanged(context.pod, context.incarnation, batch, reply);
    return reply;
  }
}

/** How a life of a pod is named towards the store. */
export function memberOf(pod: number, incarnation: number): string {
  return `pod-${pod}/${incarnation}`;
}
