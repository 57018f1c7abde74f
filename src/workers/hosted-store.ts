/**
 * The store that the primary holds, as a worker's coordinator: without Redis the limits hold over
 * all workers as they would over so many pods.
 *
 * One lane, as on a single Redis server. A question that is not answered in time has failed like
 * one to Redis: the primary may have answered it, and the engine knows what to do about that.
 */
import type { Batch, BatchReply, Roster } from "../core/exchange.ts";
import type { Limit } from "../core/limit.ts";
import type { StoreCall, StoreCallReply } from "../core/store-call.ts";
import { type DurationUs, US_PER_MS } from "../core/units.ts";
import { type Coordinator, CoordinatorError, type HeartbeatTerms } from "../ports/coordinator.ts";
import type { StoreAnswer, StoreQuestion } from "./messages.ts";

/** Questions that may be open at once; far more than the engine ever asks. */
const OPEN_MAX = 1_024;

export interface HostedStoreOptions {
  /** Sends a question to the primary; false when it is gone. */
  readonly send: (id: number, question: StoreQuestion) => boolean;
  readonly timeoutUs: DurationUs;
}

interface Open {
  resolve(told: unknown): void;
  reject(error: CoordinatorError): void;
  readonly timer: NodeJS.Timeout;
}

export class HostedStore implements Coordinator {
  readonly lanes: number = 1;
  readonly #options: HostedStoreOptions;
  readonly #open = new Map<number, Open>();
  #lastId = 0;
  #closed = false;

  constructor(options: HostedStoreOptions) {
    this.#options = options;
  }

  /** An answer has come; one that came too late is nobody's any more. */
  answered(id: number, answer: StoreAnswer): void {
    const open = this.#take(id);
    if (open === undefined) return;
    if ("told" in answer) open.resolve(answer.told);
    else open.reject(new CoordinatorError(answer.trouble, answer.message));
  }

  exchange(batch: Batch): Promise<BatchReply> {
    return this.#ask<BatchReply>({
      ask: "exchange",
      batch: { ...batch, limits: namesOf(batch.limits) },
    });
  }

  call(call: StoreCall): Promise<StoreCallReply> {
    return this.#ask<StoreCallReply>({
      ask: "call",
      call: { ...call, limits: namesOf(call.limits) },
    });
  }

  heartbeat(terms: HeartbeatTerms): Promise<Roster> {
    return this.#ask<Roster>({ ask: "heartbeat", terms });
  }

  async leave(): Promise<void> {
    await this.#ask({ ask: "leave" });
  }

  async close(): Promise<void> {
    this.#closed = true;
    const error = new CoordinatorError("unreachable", "the store of the primary is closed");
    for (const id of [...this.#open.keys()]) this.#take(id)?.reject(error);
  }

  #ask<R>(question: StoreQuestion): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#lastId += 1;
      const id = this.#lastId;
      if (this.#open.size >= OPEN_MAX) {
        reject(new CoordinatorError("timeout", `${OPEN_MAX} questions are unanswered`));
      } else if (this.#closed || !this.#options.send(id, question)) {
        reject(new CoordinatorError("unreachable", "the primary is gone"));
      } else {
        const { timeoutUs } = this.#options;
        const late = (): void => {
          const ms = timeoutUs / US_PER_MS;
          this.#take(id)?.reject(new CoordinatorError("timeout", `no answer within ${ms} ms`));
        };
        const timer = setTimeout(late, timeoutUs / US_PER_MS);
        this.#open.set(id, { resolve: (told) => resolve(told as R), reject, timer });
      }
    });
  }

  #take(id: number): Open | undefined {
    const open = this.#open.get(id);
    if (open !== undefined) clearTimeout(open.timer);
    this.#open.delete(id);
    return open;
  }
}

/** A limit holds maps of overrides, which the store does not look at. */
function namesOf(limits: readonly Limit[]): { readonly name: string }[] {
  return limits.map(({ name }) => ({ name }));
}
