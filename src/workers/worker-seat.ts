/**
 * A worker's place: what it knows of the primary and how it speaks to it.
 *
 * A worker outlives its primary only as long as it takes to answer what is in flight and to tell
 * the store what it has admitted: nobody would hand it connections any more, and nobody would stop
 * it.
 */
import cluster from "node:cluster";
import type { DurationUs } from "../core/units.ts";
import { HostedStore } from "./hosted-store.ts";
import type { Addresses, Begin, ToPrimary, ToWorker } from "./messages.ts";
import type { WorkerReport } from "./worker-report.ts";

const REPORT_MS = 1_000;

/** What the primary, or its end, makes a worker do. */
export interface SeatListener<T> {
  configure(texts: T): void;
  /** Also when the primary is gone. */
  stop(): void;
  /** @param isWhole - With what costs more to find out. */
  report(isWhole: boolean): Promise<WorkerReport>;
  /** A report could not be made. */
  onFault(error: unknown): void;
}

export class WorkerSeat<T> {
  readonly begin: Begin<T>;
  /** The store of the primary, once it was asked for. */
  #store: HostedStore | undefined;

  /** Says that this worker listens, and waits for what it is to do. */
  static taken<T>(): Promise<WorkerSeat<T>> {
    return new Promise((resolve) => {
      process.once("message", (message: Begin<T>) => resolve(new WorkerSeat(message)));
      process.send?.({ kind: "hello" } satisfies ToPrimary, undefined, undefined, () => {});
    });
  }

  private constructor(begin: Begin<T>) {
    this.begin = begin;
    // Whoever signals a group of processes, such as a terminal, means the primary.
    for (const signal of ["SIGINT", "SIGHUP"] as const) process.on(signal, () => {});
  }

  get index(): number {
    return this.begin.index;
  }

  /** Who this worker is to the fleet. */
  memberId(podId: string): string {
    return `${podId}/${this.index}`;
  }

  /** The store that the primary holds. @param timeoutUs - An answer that takes longer is lost. */
  store(timeoutUs: DurationUs): HostedStore {
    const store = new HostedStore({
      timeoutUs,
      send: (id, question) => this.#send({ kind: "store", id, question }),
    });
    this.#store = store;
    return store;
  }

  /** Follows the primary from now on. */
  follow(listener: SeatListener<T>): void {
    process.on("message", (message: ToWorker<T>) => this.#heard(message, listener));
    cluster.worker?.once("disconnect", () => {
      // Else Node ends this process now.
      if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
      listener.stop();
    });
    if (!process.connected) listener.stop();
    const tell = (): void => {
      listener
        .report(false)
        .then((report) => this.#send({ kind: "report", report }), listener.onFault);
    };
    setInterval(tell, REPORT_MS).unref();
  }

  /** Reports for duty. */
  up(addresses: Addresses, report: WorkerReport): void {
    this.#send({ kind: "up", addresses, report });
  }

  /** The last word; resolves when it is on its way, or cannot be. */
  async leave(report: WorkerReport): Promise<void> {
    await this.#lastWord({ kind: "report", report });
  }

  /** It cannot start. @param message - A sentence for the operator. */
  async fail(message: string): Promise<void> {
    await this.#lastWord({ kind: "failed", message });
  }

  #heard(message: ToWorker<T>, listener: SeatListener<T>): void {
    switch (message.kind) {
      case "begin":
        return;
      case "configure":
        listener.configure(message.texts);
        return;
      case "report": {
        const { id } = message;
        const tell = (report: WorkerReport): boolean => this.#send({ kind: "report", id, report });
        listener.report(true).then(tell, listener.onFault);
        return;
      }
      case "stored":
        this.#store?.answered(message.id, message.answer);
        return;
      case "stop":
        listener.stop();
    }
  }

  #send(message: ToPrimary): boolean {
    if (!process.connected) return false;
    // What cannot be sent is lost with the channel, whose end is noticed.
    process.send?.(message, undefined, undefined, () => {});
    return true;
  }

  #lastWord(message: ToPrimary): Promise<void> {
    return new Promise((resolve) => {
      if (!process.connected) resolve();
      else {
        process.send?.(message, undefined, undefined, () => {
          if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
          if (process.connected) process.disconnect();
          resolve();
        });
      }
    });
  }
}
