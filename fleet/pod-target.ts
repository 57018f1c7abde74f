/**
 * One sidecar as the load generator sees it: a few kept-alive connections to its Unix socket, over
 * which every check is one `POST /v1/check`.
 *
 * A request goes to the connection with the fewest unanswered ones. With connections to spare that
 * is an idle one; else requests are pipelined, and the sidecar answers them in order.
 */
import { connect, type Socket } from "node:net";
import type { InstantUs } from "../src/core/units.ts";
import { AnswerReader } from "./answer-reader.ts";
import { OUTCOME, SOURCES } from "./journal.ts";
import { monotonicUs } from "./monotonic.ts";
import { Pace } from "./pace.ts";

/** Enough that a check which is held for a few ms delays no other one at the rates of a harness. */
const CONNECTIONS = 16;

/** Unanswered requests of one sidecar; beyond it requests fail unsent, as a full backlog's do. */
const UNANSWERED_MAX = 5_000;

const RECONNECT_AFTER_US = 100_000;

const NO_SOURCE = SOURCES.indexOf("none");

/** Checks of one limit, each at its instant. */
export interface Stream {
  /** One of `LIMIT`. */
  readonly limit: number;
  readonly perSecond: number;
  /** The bytes of requests that take turns. */
  readonly requests: readonly string[];
}

export interface Request {
  readonly dueUs: InstantUs;
  readonly sentUs: InstantUs;
  /** One of `LIMIT`. */
  readonly limit: number;
}

/**
 * Told about each request once: outcome and source as in a record of the journal, and of one that
 * failed why.
 */
export type Settled = (
  pod: number,
  request: Request,
  outcome: number,
  source: number,
  why?: string,
) => void;

export class PodTarget {
  readonly pod: number;
  readonly #paces: readonly Pace[];
  readonly #streams: readonly Stream[];
  readonly #lines: readonly Line[];
  readonly #settled: Settled;
  readonly #socket: string;
  #turn = 0;

  constructor(pod: number, socket: string, streams: readonly Stream[], settled: Settled) {
    this.pod = pod;
    this.#socket = socket;
    this.#streams = streams;
    this.#settled = settled;
    const nowUs = monotonicUs();
    this.#paces = streams.map(
      // The golden ratio spreads the phases of any number of pods.
      ({ perSecond }, index) => new Pace(nowUs, perSecond, ((pod + index) * 0.618_034) % 1),
    );
    this.#lines = Array.from({ length: CONNECTIONS }, () => new Line(this.#settle));
    for (const line of this.#lines) line.open(socket);
  }

  get unanswered(): number {
    return this.#lines.reduce((sum, line) => sum + line.unanswered.length, 0);
  }

  /** Sends everything that is due. */
  send(nowUs: InstantUs): void {
    for (const [index, { limit, requests }] of this.#streams.entries()) {
      const pace = this.#paces[index] as Pace;
      for (let dueUs = pace.next(nowUs); dueUs !== undefined; dueUs = pace.next(nowUs)) {
        const request = { dueUs, sentUs: nowUs, limit };
        const line = this.#freest(nowUs);
        this.#turn += 1;
        if (line === undefined) this.#fail(request, "no connection, or too many unanswered");
        else line.add(request, requests[this.#turn % requests.length] as string);
      }
    }
    for (const line of this.#lines) line.flush();
  }

  /** Other rates from now on, in the order of the streams. */
  offer(perSecond: readonly number[]): void {
    const nowUs = monotonicUs();
    for (const [index, pace] of this.#paces.entries()) pace.change(nowUs, perSecond[index] ?? 0);
  }

  /** Offers nothing any more; what is unanswered may still come. */
  leave(): void {
    this.offer([]);
  }

  /** Offers nothing any more and gives up what is unanswered. */
  drop(): void {
    for (const line of this.#lines) line.end();
  }

  readonly #settle: Settle = (request, outcome, source, why) => {
    this.#settled(this.pod, request, outcome, source, why);
  };

  #fail(request: Request, why: string): void {
    this.#settle(request, OUTCOME.failed, NO_SOURCE, why);
  }

  #freest(nowUs: InstantUs): Line | undefined {
    let best: Line | undefined;
    let total = 0;
    for (const line of this.#lines) {
      if (!line.isOpen) line.reopen(this.#socket, nowUs);
      total += line.unanswered.length;
      if (!line.isOpen || (best !== undefined && best.unanswered.length <= line.unanswered.length))
        continue;
      best = line;
    }
    return total < UNANSWERED_MAX ? best : undefined;
  }
}

type Settle = (request: Request, outcome: number, source: number, why?: string) => void;

/** One connection with its unanswered requests, oldest first. */
class Line {
  unanswered: Request[] = [];
  isOpen = false;
  readonly #settle: Settle;
  #socket: Socket | undefined;
  #outgoing = "";
  #reopenAtUs: InstantUs = 0;

  constructor(settle: Settle) {
    this.#settle = settle;
  }

  open(path: string): void {
    const socket = connect(path);
    const reader = new AnswerReader((status, body) => this.#answered(status, body));
    this.#socket = socket;
    this.isOpen = true;
    socket.on("data", (chunk: Buffer) => {
      try {
        reader.push(chunk);
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
    let why = "it ended";
    socket.on("error", ({ message }) => {
      why = message;
    });
    socket.on("close", () => this.#closed(socket, why));
  }

  reopen(path: string, nowUs: InstantUs): void {
    if (nowUs >= this.#reopenAtUs) this.open(path);
  }

  add(request: Request, bytes: string): void {
    this.unanswered.push(request);
    this.#outgoing += bytes;
  }

  flush(): void {
    if (this.#outgoing === "") return;
    this.#socket?.write(this.#outgoing, "latin1");
    this.#outgoing = "";
  }

  end(): void {
    this.#reopenAtUs = Number.POSITIVE_INFINITY;
    this.#socket?.destroy(new Error("it was given up"));
  }

  #answered(status: number, body: string): void {
    const request = this.unanswered.shift();
    if (request === undefined) throw new Error("an answer to no request");
    if (status !== 200) {
      this.#settle(request, OUTCOME.failed, NO_SOURCE, `status ${status}: ${body}`);
      return;
    }
    const outcome = body.startsWith('{"allowed":true') ? OUTCOME.admitted : OUTCOME.denied;
    this.#settle(request, outcome, sourceIn(body));
  }

  #closed(socket: Socket, how: string): void {
    if (this.#socket !== socket) return;
    this.isOpen = false;
    this.#reopenAtUs = Math.max(this.#reopenAtUs, monotonicUs() + RECONNECT_AFTER_US);
    const lost = this.unanswered;
    this.unanswered = [];
    this.#outgoing = "";
    const why = `the connection was closed without an answer: ${how}`;
    for (const request of lost) this.#settle(request, OUTCOME.failed, NO_SOURCE, why);
  }
}

function sourceIn(body: string): number {
  const at = body.indexOf('"source":"') + 10;
  if (body.startsWith("local", at)) return 0;
  if (body.startsWith("store", at)) return 1;
  return body.startsWith("fallback", at) ? 2 : NO_SOURCE;
}
