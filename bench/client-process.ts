/**
 * A load generator in a process of its own, so that it can be pinned to the other core: it takes
 * orders one after the other and answers each with what it counted.
 */
import { type ChildProcess, fork, type Serializable } from "node:child_process";

type Told<Count> = { readonly count: Count } | { readonly trouble: string };

export class ClientProcess<Order, Count> {
  readonly #child: ChildProcess;
  #settle: (told: Told<Count>) => void = () => {};

  /**
   * @param command - Program and arguments in front of node.
   * @param args - What tells the program that it is this client, and what the client must know.
   */
  constructor(main: string, command: readonly string[] | undefined, args: readonly string[]) {
    const [execPath, ...execArgv] = command === undefined ? [] : [...command, process.execPath];
    const pinned = execPath === undefined ? {} : { execPath, execArgv };
    this.#child = fork(main, args, { serialization: "advanced", ...pinned });
    this.#child.on("message", (told: Told<Count>) => this.#settle(told));
    this.#child.on("exit", () => this.#settle({ trouble: "the client of the benchmark died" }));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** @throws {Error} When a connection ends, an answer is lost, or the client ends. */
  async run(order: Order): Promise<Count> {
    const told = await new Promise<Told<Count>>((resolve) => {
      this.#settle = resolve;
      this.#child.send(order as Serializable);
    });
    if ("trouble" in told) throw new Error(told.trouble);
    return told.count;
  }

  /** It has nothing to lose, and must not notice that a server ends. */
  close(): void {
    this.#child.kill("SIGKILL");
  }
}

/** Runs in the process that `ClientProcess` started, and ends with the one that started it. */
export function serveOrders<Order, Count>(perform: (order: Order) => Promise<Count>): void {
  process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
  process.on("message", (order: Order) => {
    perform(order).then(
      (count) => process.send?.({ count }),
      (error: Error) => process.send?.({ trouble: error.message }),
    );
  });
}
