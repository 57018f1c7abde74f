/**
 * Two ways to load anything that answers checks: as fast as it goes, and at an even pace whatever
 * the answers (an open loop), where a check's time begins when it was due.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { AnswerReader } from "../fleet/answer-reader.ts";
import type { Address } from "./closed-loop.ts";
import { OpenLoop, type PaceOrder } from "./open-loop.ts";
import { type RoundTimes, roundTimes } from "./times.ts";

export interface Asker {
  /** Asks once; `done` is told whether the answer was the expected one. */
  ask(done: (isRight: boolean) => void): void;
  close(): void;
}

export interface AskerRound {
  readonly perSecond: number;
  /** Wrong answers. */
  readonly wrong: number;
}

export interface AskerTimes extends RoundTimes {
  readonly wrong: number;
}

/** Keeps so many checks under way. */
export async function askClosed(
  asker: Asker,
  concurrency: number,
  seconds: number,
): Promise<AskerRound> {
  let [answers, wrong] = [0, 0];
  const startMs = performance.now();
  const endMs = startMs + seconds * 1_000;
  const chain = (): Promise<void> =>
    new Promise((resolve) => {
      const next = (): void => {
        asker.ask((isRight) => {
          answers += 1;
          if (!isRight) wrong += 1;
          if (performance.now() >= endMs) resolve();
          else next();
        });
      };
      next();
    });
  await Promise.all(Array.from({ length: concurrency }, chain));
  return { perSecond: answers / ((performance.now() - startMs) / 1_000), wrong };
}

/** Asks at an even pace. @throws {Error} When an answer is lost. */
export async function askPaced(asker: Asker, order: PaceOrder): Promise<AskerTimes> {
  const loop = new OpenLoop();
  let wrong = 0;
  await loop.run(order, (dueUs) => {
    asker.ask((isRight) => {
      if (!isRight) wrong += 1;
      loop.answered(dueUs);
    });
  });
  return { ...roundTimes(loop.times, loop.late), wrong };
}

/** Asks over HTTP; a check that finds no idle connection waits for one. */
export class HttpAsker implements Asker {
  /** All connections are there. */
  readonly ready: Promise<void>;
  readonly #requests: readonly string[];
  readonly #sockets: readonly Socket[];
  readonly #idle: ((done: (isRight: boolean) => void) => void)[] = [];
  readonly #waiting: ((isRight: boolean) => void)[] = [];
  #waitingFrom = 0;
  #next = 0;
  #isClosing = false;

  /** @param requests - As bytes, sent in turn. @param isRight - Of status and body. */
  constructor(
    address: Address,
    requests: readonly string[],
    connections: number,
    isRight: (status: number, body: string) => boolean,
  ) {
    this.#requests = requests;
    this.#sockets = Array.from({ length: connections }, () => this.#open(address, isRight));
    this.ready = Promise.all(this.#sockets.map((socket) => once(socket, "connect"))).then(() => {});
  }

  ask(done: (isRight: boolean) => void): void {
    const idle = this.#idle.pop();
    if (idle === undefined) this.#waiting.push(done);
    else idle(done);
  }

  close(): void {
    this.#isClosing = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  #open(address: Address, isRight: (status: number, body: string) => boolean): Socket {
    const socket = "path" in address ? connect(address) : connect(address);
    let pending: (isRight: boolean) => void = () => {};
    const send = (done: (isRight: boolean) => void): void => {
      pending = done;
      socket.write(this.#requests[this.#next] as string, "latin1");
      this.#next = (this.#next + 1) % this.#requests.length;
    };
    const reader = new AnswerReader((status, body) => {
      const told = pending;
      const waiting = this.#waiting[this.#waitingFrom];
      if (waiting === undefined) this.#idle.push(send);
      else {
        this.#waitingFrom += 1;
        send(waiting);
        if (this.#waitingFrom === this.#waiting.length) {
          this.#waiting.length = 0;
          this.#waitingFrom = 0;
        }
      }
      told(isRight(status, body));
    });
    socket.on("data", (chunk: Buffer) => reader.push(chunk));
    socket.on("close", () => {
      // What was under way would never be answered; the benchmark must not wait for it.
      if (!this.#isClosing) throw new Error("the server closed a connection");
    });
    socket.on("connect", () => {
      const waiting = this.#waiting[this.#waitingFrom];
      if (waiting === undefined) this.#idle.push(send);
      else {
        this.#waitingFrom += 1;
        send(waiting);
      }
    });
    return socket;
  }
}
