/**
 * The load of the gRPC benchmark, in a process of its own so that it can be pinned to the other
 * core: as many calls as the server takes (a closed loop), or as many as are due whatever the
 * answers (an open loop). In the open loop a call's time begins when it was due, so a client that
 * woke up late, or a server that stood still, cannot hide it.
 */
import { monotonicUs } from "../fleet/monotonic.ts";
import type { InstantUs } from "../src/core/units.ts";
import { type ClientProcess, serveOrders } from "./client-process.ts";
import { CallConnection } from "./grpc-calls.ts";
import { OpenLoop, type PaceOrder } from "./open-loop.ts";

export interface GrpcOrder {
  /** Socket of the server. */
  readonly path: string;
  /** Requests, sent in turn. */
  readonly requests: readonly Uint8Array[];
  readonly connections: number;
  /** Calls at once over all connections, or calls that are due a second. */
  readonly load: { readonly atOnce: number } | Omit<PaceOrder, "seconds">;
  readonly seconds: number;
}

export interface GrpcCount {
  readonly answers: number;
  readonly perSecond: number;
  readonly failed: number;
  /** Calls that were answered with another code than OK. */
  readonly denied: number;
  /** Of an open loop: times of its calls, and how late they were sent, in ms. */
  readonly times: readonly number[];
  readonly late: readonly number[];
}

export const GRPC_CLIENT_ARGUMENT = "--as-grpc-client";

/** The client process. */
export type GrpcClient = ClientProcess<GrpcOrder, GrpcCount>;

/** Runs in the process of a `GrpcClient`. */
export function runGrpcClient(): void {
  serveOrders((order: GrpcOrder) => new GrpcLoad(order).run());
}

class GrpcLoad {
  readonly #order: GrpcOrder;
  readonly #requests: readonly Buffer[];
  readonly #connections: CallConnection[] = [];
  /** When calls that are under way were due, by stream, for each connection. */
  readonly #due: Map<number, number>[] = [];
  readonly #loop = new OpenLoop();
  #next = 0;
  #answers = 0;
  #failed = 0;
  #denied = 0;
  #isOver = false;

  constructor(order: GrpcOrder) {
    this.#order = order;
    this.#requests = order.requests.map((bytes) => Buffer.from(bytes));
  }

  async run(): Promise<GrpcCount> {
    let fail: (error: Error) => void = () => {};
    const broken = new Promise<never>((_resolve, reject) => {
      fail = reject;
    });
    broken.catch(() => {});
    try {
      await Promise.race([broken, this.#connect(fail)]);
      const startUs = monotonicUs();
      const { load, seconds } = this.#order;
      if ("atOnce" in load) await Promise.race([broken, this.#keepBusy(load.atOnce)]);
      else await Promise.race([broken, this.#keepPace({ ...load, seconds })]);
      const tookSeconds = (monotonicUs() - startUs) / 1e6;
      const [answers, failed, denied] = [this.#answers, this.#failed, this.#denied];
      const { times, late } = this.#loop;
      return { answers, perSecond: answers / tookSeconds, failed, denied, times, late };
    } finally {
      for (const connection of this.#connections) connection.close();
    }
  }

  async #connect(onTrouble: (error: Error) => void): Promise<void> {
    for (let i = 0; i < this.#order.connections; i += 1) {
      const due = new Map<number, number>();
      await new Promise<void>((ready) => {
        const onAnswer = (stream: number, message: Buffer | undefined): void =>
          this.#onAnswer(i, stream, message);
        this.#connections.push(
          new CallConnection(this.#order.path, { onAnswer, onTrouble }, ready),
        );
      });
      this.#due.push(due);
    }
  }

  #call(index: number, dueUs: number): void {
    const message = this.#requests[this.#next % this.#requests.length] as Buffer;
    this.#next += 1;
    const stream = this.#connections[index]?.call(message) ?? 0;
    this.#due[index]?.set(stream, dueUs);
  }

  #onAnswer(index: number, stream: number, message: Buffer | undefined): void {
    const due = this.#due[index];
    const dueUs = due?.get(stream);
    if (dueUs === undefined) return;
    due?.delete(stream);
    this.#answers += 1;
    // Field 1, a number, OK.
    if (message === undefined) this.#failed += 1;
    else if (message[0] !== 0x08 || message[1] !== 1) this.#denied += 1;
    if ("perSecond" in this.#order.load) {
      this.#loop.answered(dueUs);
    } else if (!this.#isOver) {
      this.#call(index, 0);
    }
  }

  async #keepBusy(atOnce: number): Promise<void> {
    for (let i = 0; i < atOnce; i += 1) this.#call(i % this.#connections.length, 0);
    for (const connection of this.#connections) connection.flush();
    await new Promise((resolve) => setTimeout(resolve, this.#order.seconds * 1_000));
    this.#isOver = true;
  }

  async #keepPace(order: PaceOrder): Promise<void> {
    const offer = (dueUs: InstantUs): void => {
      this.#call(this.#next % this.#connections.length, dueUs);
    };
    await this.#loop.run(order, offer, () => {
      for (const connection of this.#connections) connection.flush();
    });
  }
}
