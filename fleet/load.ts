/** The harness's end of the load generator. */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Order, Told } from "./generator.ts";

/** The argument by which the program knows that it shall be the generator. */
export const GENERATOR_ARGUMENT = "--as-load-generator";

const MAIN = fileURLToPath(new URL("./main.js", import.meta.url));

export class Load {
  /** Why requests failed, of the first ones. */
  readonly failures: string[] = [];
  readonly #child: ChildProcess;
  readonly #left = new Map<number, () => void>();
  readonly #ended: Promise<void>;
  readonly #exited: Promise<void>;

  /** @param onRecords - Takes records as they come, `RECORD_FIELDS` doubles each. */
  constructor(onRecords: (records: Float64Array) => void) {
    this.#child = fork(MAIN, [GENERATOR_ARGUMENT], { serialization: "advanced" });
    this.#exited = new Promise((resolve) => this.#child.once("exit", () => resolve()));
    this.#ended = new Promise((resolve, reject) => {
      this.#child.on("message", (told: Told) => {
        if (told.kind === "records") onRecords(told.records);
        else if (told.kind === "failure") this.failures.push(`pod-${told.pod}: ${told.why}`);
        else if (told.kind === "left") this.#left.get(told.pod)?.();
        else resolve();
      });
      this.#child.once("exit", () => reject(new Error("the load generator died")));
    });
    // Whoever waits for the end hears of it; a run that is being given up does not.
    this.#ended.catch(() => {});
  }

  /** Rejects when the generator dies before its time. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  tell(order: Order): void {
    if (this.#child.connected) this.#child.send(order);
  }

  /** Resolves when nothing more will be sent to a pod; what is unanswered may still come. */
  leave(pod: number): Promise<void> {
    const left = new Promise<void>((resolve) => this.#left.set(pod, resolve));
    this.tell({ kind: "leave", pod });
    return left;
  }

  /** Stops offering, and resolves when all records are there. */
  async end(): Promise<void> {
    this.tell({ kind: "end" });
    await this.#ended;
  }

  /** Ends the process. */
  async close(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect();
    await this.#exited;
  }
}
