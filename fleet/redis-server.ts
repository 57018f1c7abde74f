/**
 * A real Redis (or Valkey) server for a run: on a free port, without persistence, with every way to
 * misbehave that the schedule knows.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { connect } from "node:net";
import { freePort } from "./free-port.ts";

const READY_WITHIN_MS = 10_000;
const ANSWER_WITHIN_MS = 500;
const POLL_MS = 10;
const BINARIES = ["redis-server", "valkey-server"] as const;

/** The name of a server program on PATH. @throws {Error} When there is none. */
export function findRedisServer(): string {
  for (const name of BINARIES) {
    if (spawnSync(name, ["--version"], { stdio: "ignore" }).error === undefined) return name;
  }
  throw new Error("a fleet needs redis-server (or valkey-server) on PATH, and there is none");
}

export class RedisServer {
  readonly port: number;
  readonly #folder: string;
  readonly #binary: string;
  #child: ChildProcess | undefined;
  #isHanging = false;
  /** Script calls of servers that were stopped, and of the running one as last asked. */
  #callsBefore = 0;
  #callsNow = 0;

  private constructor(port: number, folder: string, binary: string) {
    this.port = port;
    this.#folder = folder;
    this.#binary = binary;
  }

  /** Starts a server on a free port. @param folder - Its working folder. */
  static async start(folder: string): Promise<RedisServer> {
    const server = new RedisServer(await freePort(), folder, findRedisServer());
    await server.start();
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}/0`;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get state(): "up" | "hanging" | "stopped" {
    if (this.#child === undefined) return "stopped";
    return this.#isHanging ? "hanging" : "up";
  }

  /** Calls of EVAL and EVALSHA over the whole run, as far as the server could be asked. */
  get scriptCalls(): number {
    return this.#callsBefore + this.#callsNow;
  }

  /** Lets a hanging server go on, or starts a stopped one, empty. Waits until it answers. */
  async start(): Promise<void> {
    if (this.#child !== undefined) {
      this.#child.kill("SIGCONT");
      this.#isHanging = false;
      return;
    }
    const { port } = this;
    const args = [
      "--port",
      String(port),
      "--bind",
      "127.0.0.1",
      "--save",
      "",
      "--appendonly",
      "no",
    ];
    // A group of its own: Ctrl-C is for the harness, which stops the server in its turn.
    const child = spawn(this.#binary, [...args, "--dir", this.#folder], {
      stdio: "ignore",
      detached: true,
    });
    this.#child = child;
    const deadline = performance.now() + READY_WITHIN_MS;
    while (!(await this.ask(["PING"])).startsWith("+PONG")) {
      if (child.exitCode !== null || performance.now() > deadline) {
        throw new Error(`${this.#binary} does not answer on port ${port}`);
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  hang(): void {
    this.#child?.kill("SIGSTOP");
    this.#isHanging = this.#child !== undefined;
  }

  /** Ends the process at once. Data is lost. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    if (!this.#isHanging) await this.refreshCalls();
    this.#child = undefined;
    this.#isHanging = false;
    this.#callsBefore += this.#callsNow;
    this.#callsNow = 0;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    if (child.exitCode !== null || !child.kill("SIGKILL")) return;
    await ended;
  }

  /** Asks the server how many scripts it has run; a server that does not answer changes nothing. */
  async refreshCalls(): Promise<void> {
    if (this.state !== "up") return;
    const info = await this.ask(["INFO", "commandstats"]);
    let calls = 0;
    for (const match of info.matchAll(/cmdstat_eval(?:sha)?:calls=([0-9]+)/g)) {
      calls += Number(match[1]);
    }
    this.#callsNow = Math.max(this.#callsNow, calls);
  }

  /** Sends one command on its own connection. @returns The raw reply; empty for none in time. */
  ask(command: readonly string[]): Promise<string> {
    return new Promise((resolve) => {
      let reply = "";
      const socket = connect(this.port, "127.0.0.1");
      const end = (): void => {
        socket.destroy();
        resolve(reply);
      };
      socket.setTimeout(ANSWER_WITHIN_MS, end);
      socket.on("connect", () => socket.write(encode(command)));
      socket.on("data", (chunk) => {
        reply += chunk.toString("latin1");
        if (isWhole(reply)) end();
      });
      socket.on("error", end);
    });
  }
}

function encode(command: readonly string[]): string {
  const words = command.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
  return `*${command.length}\r\n${words.join("")}`;
}

/** Enough of RESP for the replies of simple commands. */
function isWhole(reply: string): boolean {
  const lineEnd = reply.indexOf("\r\n");
  if (lineEnd < 0) return false;
  if (!reply.startsWith("$")) return true;
  return reply.length >= lineEnd + 2 + Math.max(-2, Number(reply.slice(1, lineEnd))) + 2;
}
