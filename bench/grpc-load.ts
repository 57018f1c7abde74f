/**
 * The load of the gRPC benchmark, in a process of its own so that it can be pinned to the other
 * core: as many calls as the server takes (a closed loop), or as many as are due whatever the
 * answers (an open loop). In the open loop a call's time begins when it was due, so a client that
 * woke up late, or a server that stood still, cannot hide it.
 */
import { type ChildProcess, fork } from "node:child_process";
import { monotonicUs } from "../fleet/monotonic.ts";
import { Pace } from "../fleet/pace.ts";
import { CallConnection } from "./grpc-calls.ts";

export interface GrpcOrder {
  /** Socket of the server. */
  readonly path: string;
  /** Requests, sent in turn. */
  readonly requests: readonly Uint8Array[];
  readonly connections: number;
  /** Calls at once over all connections, or calls that are due a second. */
  readonly load: { readonly atOnce: number } | { readonly perSecond: number };
  readonly seconds: number;
}

export interface GrpcCount {
  readonly answers: number;
  readonly perSecond: number;
  readonly failed: number;
  /** Calls that were answered with another code than OK. */
  readonly denied: number;
  /** Times of the calls in ms, sorted; of an open loop only. */
  readonly times: readonly number[];
}

type Told = GrpcCount | { readonly trouble: string };

export const GRPC_CLIENT_ARGUMENT = "--as-grpc-client";

/** Answers of an open loop are waited for as long as this. */
const LAST_ANSWER_WITHIN_MS = 5_000;
const PACE_MS = 1;

/** The client process. */
export class GrpcClient {
  readonly #child: ChildProcess;
  #settle: (told: Told) => void = () => {};

  /** @param command - Program and arguments in front of node. */
  constructor(main: string, command: readonly string[] | undefined) {
    const [execPath, ...execArgv] = command === undefined ? [] : [...command, process.execPath];
    const pinned = execPath === undefined ? {} : { execPath, execArgv };
    this.#child = fork(main, [GRPC_CLIENT_ARGUMENT], { serialization: "advanced", ...pinned });
    this.#child.on("message", (told: Told) => this.#settle(told));
    this.#child.on("exit", () => this.#settle({ trouble: "the client of the benchmark died" }));
  }

  /** @throws {Error} When a connection ends, a call is lost, or the client ends. */
  async run(order: GrpcOrder): Promise<GrpcCount> {
    const told = await new Promise<Told>((resolve) => {
      this.#settle = resolve;
      this.#child.send(order);
    });
    if ("trouble" in told) throw new Error(told.trouble);
    return told;
  }

  close(): void {
    if (this.#child.connected) this.#child.disconnect();
  }
}

/** Runs in the process that `GrpcClient` started. */
export function runGrpcClient(): void {
  process.on("message", (order: GrpcOrder) => {
    const load = new GrpcLoad(order);
    load.run().then(
      (count) => process.send?.(count),
      (error: Error) => process.send?.({ trouble: error.message }),
    );
  });
}

class GrpcLoad {
  readonly #order: GrpcOrder;
  readonly #requests: readonly Buffer[];
  readonly #connections: CallConnection[] = [];
  /** When calls that are under way were due, by stream, for each connection. */
  readonly #due: Map<number, number>[] = [];
  readonly #times: number[] = [];
  #next = 0;
  #underWay = 0;
  #answers = 0;
  #failed = 0;
  #denied = 0;
  #isOver = false;
  #onIdle: () => void = () => {};

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
      const { load } = this.#order;
      if ("atOnce" in load) await Promise.race([broken, this.#keepBusy(load.atOnce)]);
      else await Promise.race([broken, this.#keepPace(load.perSecond)]);
      const seconds = (monotonicUs() - startUs) / 1e6;
      const [answers, failed, denied] = [this.#answers, this.#failed, this.#denied];
      const times = this.#times.sort((a, b) => a - b);
      return { answers, perSecond: answers / seconds, failed, denied, times };
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
    this.#underWay += 1;
    const stream = this.#connections[index]?.call(message) ?? 0;
    this.#due[index]?.set(stream, dueUs);
  }

  #onAnswer(index: number, stream: number, message: Buffer | undefined): void {
    const due = this.#due[index];
    const dueUs = due?.get(stream);
    if (dueUs === undefined) return;
    due?.delete(stream);
    this.#underWay -= 1;
    this.#answers += 1;
    // Field 1, a number, OK.
    if (message === undefined) this.#failed += 1;
    else if (message[0] !== 0x08 || message[1] !== 1) this.#denied += 1;
    if ("perSecond" in this.#order.load) {
      this.#times.push((monotonicUs() - dueUs) / 1_000);
      if (this.#isOver && this.#underWay === 0) this.#onIdle();
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

  async #keepPace(perSecond: number): Promise<void> {
    const startUs = monotonicUs();
    const endUs = startUs + this.#order.seconds * 1e6;
    const pace = new Pace(startUs, perSecond, 0);
    await new Promise<void>((resolve) => {
      const timer = setInterval(() => {
        const nowUs = Math.min(endUs, monotonicUs());
        for (let due = pace.next(nowUs); due !== undefined; due = pace.next(nowUs)) {
          this.#call(this.#next % this.#connections.length, due);
        }
        for (const connection of this.#connections) connection.flush();
        if (nowUs < endUs) return;
        clearInterval(timer);
        resolve();
      }, PACE_MS);
    });
    this.#isOver = true;
    if (this.#underWay === 0) return;
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`${this.#underWay} calls have no answer after 5 s`));
      }, LAST_ANSWER_WITHIN_MS);
      this.#onIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
