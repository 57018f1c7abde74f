/**
 * The worker processes: starts them, replaces those that die or hang, and stops them.
 *
 * node:cluster shares the listeners: it binds each address once, in this process, accepts
 * connections here and hands them to the workers in turn. The other way, a socket that all workers
 * accept from, leaves it to the kernel who gets a connection, and with connections that live long
 * one worker ends up with most of them (docs/workers.md has both measured).
 *
 * A worker that dies is replaced, at once at first and later after a pause that doubles. When
 * several in a row die young, something is wrong that another start does not mend, and the pool
 * gives up: whoever watches this process must hear of it.
 */
import cluster, { type Worker } from "node:cluster";
import { type InstantUs, US_PER_SECOND } from "../core/units.ts";
import type { Clock } from "../ports/clock.ts";
import type { ToPrimary, ToWorker } from "./messages.ts";

/** A worker that dies younger counts as one that could not work. */
const YOUNG_US = 10 * US_PER_SECOND;
const YOUNG_DEATHS_MAX = 8;
const FIRST_PAUSE_MS = 50;
const PAUSE_MAX_MS = 5_000;
/** Seconds without a report, while this process runs, after which a worker hangs. */
const SILENT_SECONDS_MAX = 10;
/** The same for one that has not begun to report. */
const STARTING_SECONDS_MAX = 30;
const SECOND_MS = 1_000;
/** How long a process that has ended may be listened to. */
const LAST_WORD_MS = 200;

export interface PoolLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface WorkerPoolOptions<T> {
  readonly workers: number;
  readonly log: PoolLog;
  readonly clock: Clock;
  /** What a worker runs; when left out, the file that was started, also a bundle or a link. */
  readonly exec?: string;
  /** Before the first worker that dies young is replaced; each further one waits twice as long. */
  readonly firstPauseMs?: number;
  /** Seconds without a report after which a worker that was up hangs. */
  readonly silentSecondsMax?: number;
  /** What a worker is told first. @param index - Its place, from 0. */
  begin(index: number): ToWorker<T>;
  /** A worker has something to say; what its life is about is dealt with here. */
  onMessage(worker: PoolWorker<T>, message: ToPrimary): void;
  /** Nothing more will be heard of a worker. */
  onGone(worker: PoolWorker<T>): void;
  /** A worker listens on an address, which is the path or the port that was bound. */
  onListening(address: string | number): void;
  /** Workers die as soon as they start. */
  onHopeless(): void;
}

/** One process. */
export class PoolWorker<T> {
  /** Its place, from 0. */
  readonly index: number;
  /** Of this process; never used again. */
  readonly id: number;
  readonly startedAt: InstantUs;
  isUp = false;
  silentSeconds = 0;
  /** What it was told last while it started, and may not have heard. */
  unheard: ToWorker<T> | undefined;
  readonly #worker: Worker;

  constructor(index: number, worker: Worker, startedAt: InstantUs) {
    this.index = index;
    this.startedAt = startedAt;
    this.id = worker.id;
    this.#worker = worker;
  }

  get pid(): number | undefined {
    return this.#worker.process.pid;
  }

  /** A worker that is gone hears nothing, which is known soon. */
  send(message: ToWorker<T>): void {
    if (this.#worker.isConnected()) this.#worker.send(message, () => {});
  }

  kill(): void {
    this.#worker.process.kill("SIGKILL");
  }
}

export class WorkerPool<T> {
  readonly #options: WorkerPoolOptions<T>;
  readonly #workers = new Map<number, PoolWorker<T>>();
  readonly #pauses = new Set<NodeJS.Timeout>();
  #youngDeaths = 0;
  #stopping = false;
  #whenAllUp: (() => void) | undefined;
  #whenNoneUp: ((error: Error) => void) | undefined;
  #whenAllGone: (() => void) | undefined;

  constructor(options: WorkerPoolOptions<T>) {
    this.#options = options;
    cluster.setupPrimary({
      exec: options.exec ?? (process.argv[1] as string),
      args: process.argv.slice(2),
      serialization: "advanced",
    });
  }

  /** @throws {Error} When one cannot start; with its sentence for the operator. */
  start(): Promise<void> {
    const { workers } = this.#options;
    const allUp = new Promise<void>((resolve, reject) => {
      this.#whenAllUp = resolve;
      this.#whenNoneUp = reject;
    });
    for (let index = 0; index < workers; index += 1) this.#fork(index);
    setInterval(() => this.#lookForHanging(), SECOND_MS).unref();
    return allUp;
  }

  /** Those that run, in the order of their places. */
  get workers(): readonly PoolWorker<T>[] {
    return [...this.#workers.values()].sort((a, b) => a.index - b.index);
  }

  get up(): readonly PoolWorker<T>[] {
    return this.workers.filter(({ isUp }) => isUp);
  }

  /** Also for those that start: they hear it when they are up. The last message counts then. */
  broadcast(message: ToWorker<T>): void {
    for (const worker of this.#workers.values()) {
      if (!worker.isUp) worker.unheard = message;
      worker.send(message);
    }
  }

  /** No worker is replaced any more; each is told to stop. Resolves when all are gone. */
  stop(): Promise<void> {
    this.#stopping = true;
    for (const pause of this.#pauses) clearTimeout(pause);
    this.broadcast({ kind: "stop" });
    if (this.#workers.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenAllGone = resolve;
    });
  }

  /** Ends what is left, without a drain. */
  kill(): void {
    this.#stopping = true;
    for (const worker of this.#workers.values()) worker.kill();
  }

  #fork(index: number): void {
    const forked = cluster.fork();
    const worker = new PoolWorker<T>(index, forked, this.#options.clock.monotonicUs());
    this.#workers.set(worker.id, worker);
    forked.on("message", (message: ToPrimary) => this.#heard(worker, message));
    forked.on("listening", ({ address, port }) => {
      this.#options.onListening(port > 0 ? port : address);
    });
    // A message that no longer reaches a worker is an error of the worker too, and its end follows.
    forked.on("error", () => {});
    this.#awaitEnd(forked, () => this.#gone(worker, forked));
  }

  /**
   * The channel may hold a last word after the process has ended. It may also never be told to have
   * ended: not when a connection was on its way through it.
   */
  #awaitEnd({ process: child }: Worker, whenEnded: () => void): void {
    let isTold = false;
    const ended = (): void => {
      if (isTold) return;
      isTold = true;
      whenEnded();
    };
    child.once("exit", () => {
      if (!child.connected) ended();
      else {
        child.once("disconnect", ended);
        setTimeout(ended, LAST_WORD_MS);
      }
    });
    child.on("error", () => {
      // Without a process there is no end of one; a channel that breaks is followed by it.
      if (child.pid === undefined) ended();
    });
  }

  #heard(worker: PoolWorker<T>, message: ToPrimary): void {
    // Nobody may come back: what it had counted has been added up for good.
    if (!this.#workers.has(worker.id)) return;
    worker.silentSeconds = 0;
    if (message.kind === "hello") {
      worker.unheard = undefined;
      // One that has only just started has nothing to drain.
      if (this.#stopping) worker.kill();
      else worker.send(this.#options.begin(worker.index));
    }
    if (message.kind === "up") {
      worker.isUp = true;
      // It does not listen from its first message on until it follows.
      if (worker.unheard !== undefined) worker.send(worker.unheard);
      worker.unheard = undefined;
    }
    this.#options.onMessage(worker, message);
    if (message.kind === "failed") this.#whenNoneUp?.(new Error(message.message));
    if (this.up.length === this.#options.workers) this.#begun();
  }

  #begun(): void {
    this.#whenAllUp?.();
    this.#whenAllUp = undefined;
    this.#whenNoneUp = undefined;
  }

  #gone(worker: PoolWorker<T>, { process: { exitCode, signalCode } }: Worker): void {
    this.#workers.delete(worker.id);
    this.#options.onGone(worker);
    if (this.#workers.size === 0) this.#whenAllGone?.();
    if (this.#stopping) return;
    const { index, pid } = worker;
    const livedUs = this.#options.clock.monotonicUs() - worker.startedAt;
    if (this.#whenNoneUp !== undefined) {
      const how = signalCode ?? `exit code ${exitCode}`;
      this.#whenNoneUp(new Error(`worker ${index} ended before it was ready (${how})`));
      return;
    }
    this.#youngDeaths = livedUs < YOUNG_US ? this.#youngDeaths + 1 : 0;
    const fields = { worker: index, pid, exitCode, signal: signalCode };
    if (this.#youngDeaths >= YOUNG_DEATHS_MAX) {
      this.#options.log.error(fields, "workers die as soon as they start; giving up");
      this.#options.onHopeless();
      return;
    }
    const { firstPauseMs = FIRST_PAUSE_MS } = this.#options;
    const pauseMs = Math.min(PAUSE_MAX_MS, firstPauseMs * 2 ** this.#youngDeaths);
    this.#options.log.error({ ...fields, pauseMs }, "a worker died and is replaced");
    const pause = setTimeout(() => {
      this.#pauses.delete(pause);
      this.#fork(index);
    }, pauseMs);
    this.#pauses.add(pause);
  }

  /** Seconds are counted and not measured: a machine that stood still has no worker that hangs. */
  #lookForHanging(): void {
    const { silentSecondsMax = SILENT_SECONDS_MAX } = this.#options;
    for (const worker of this.#workers.values()) {
      worker.silentSeconds += 1;
      const most = worker.isUp ? silentSecondsMax : STARTING_SECONDS_MAX;
      if (worker.silentSeconds < most) continue;
      const { index, pid, silentSeconds } = worker;
      this.#options.log.error(
        { worker: index, pid, silentSeconds },
        "a worker hangs and is killed",
      );
      worker.kill();
    }
  }
}
