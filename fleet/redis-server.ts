/**
 * A real Redis (or Valkey) server, for the harness, the benchmarks and the tests: on a free port,
 * without persistence, with every way to misbehave that a schedule or a test knows.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { delimiter, join } from "node:path";
import { freePort } from "./free-port.ts";

const READY_WITHIN_MS = 10_000;
const ANSWER_WITHIN_MS = 500;
const POLL_MS = 10;
const OUTPUT_MAX = 4_000;
/** Another process may take a port between its choice and the server's start. */
const START_ATTEMPTS = 5;
const BINARIES: readonly string[] = ["redis-server", "valkey-server"];

/** The server program on PATH. @throws {Error} When there is none. */
export function serverBinary(): string {
  const { PATH = "" } = process.env;
  for (const name of BINARIES) {
    for (const folder of PATH.split(delimiter)) {
      try {
        accessSync(join(folder, name), constants.X_OK);
        return join(folder, name);
      } catch {
        // Not here; the next folder may have it.
      }
    }
  }
  throw new Error("neither redis-server nor valkey-server is on PATH; npm test sees to it");
}

export interface RedisServerOptions {
  /** A port to use again; a free one by default. */
  readonly port?: number;
  /** Further arguments of redis-server. */
  readonly args?: readonly string[];
  /** Lines of a configuration that make it a Sentinel; its port and folder come by themselves. */
  readonly sentinel?: readonly string[];
  /** In the group of its starter it ends with it on Ctrl-C; alone by default. */
  readonly sharesGroup?: boolean;
}

/** Starts servers of a topology, one at a time. */
export type RedisStarter = (options: RedisServerOptions) => Promise<RedisServer>;

export class RedisServer {
  readonly host = "127.0.0.1";
  readonly port: number;
  readonly #folder: string;
  readonly #options: RedisServerOptions;
  #child: ChildProcess | undefined;
  #isHanging = false;
  #output = "";
  /** Script calls of processes that were stopped, and of the running one as last asked. */
  #callsBefore = 0;
  #callsNow = 0;

  private constructor(port: number, folder: string, options: RedisServerOptions) {
    this.port = port;
    this.#folder = folder;
    this.#options = options;
  }

  /**
   * Starts a server and waits until it answers.
   *
   * @param folder - Where it may make a folder of its own.
   * @throws {Error} With the server's last words.
   */
  static async start(folder: string, options: RedisServerOptions = {}): Promise<RedisServer> {
    for (let attempt = 1; ; attempt += 1) {
      const port = options.port ?? (await freePort());
      const server = new RedisServer(port, join(folder, `redis-${port}`), options);
      try {
        await server.start();
        return server;
      } catch (error) {
        await server.dispose();
        if (options.port !== undefined || attempt === START_ATTEMPTS) throw error;
      }
    }
  }

  get url(): string {
    return `redis://${this.host}:${this.port}/0`;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get state(): "up" | "hanging" | "stopped" {
    if (this.#child === undefined) return "stopped";
    return this.#isHanging ? "hanging" : "up";
  }

  /** Calls of EVAL and EVALSHA over all its processes, as far as they could be asked. */
  get scriptCalls(): number {
    return this.#callsBefore + this.#callsNow;
  }

  /** Lets a hanging server go on, or starts a stopped one, empty. Waits until it answers. */
  async start(): Promise<void> {
    if (this.#child !== undefined) return this.resume();
    this.#output = "";
    mkdirSync(this.#folder, { recursive: true });
    const child = spawn(serverBinary(), this.#arguments(), {
      stdio: ["ignore", "pipe", "pipe"],
      detached: this.#options.sharesGroup !== true,
    });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (text: Buffer) => {
        this.#output = (this.#output + text.toString()).slice(-OUTPUT_MAX);
      });
    }
    const deadline = performance.now() + READY_WITHIN_MS;
    while (!/^(\+PONG|-NOAUTH)/.test(await this.ask(["PING"]))) {
      if (child.exitCode !== null || performance.now() > deadline) {
        throw new Error(`redis-server on port ${this.port} did not start:\n${this.#output}`);
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  /** Stops answering, as a hanging host does; connections stay open. */
  pause(): void {
    this.#child?.kill("SIGSTOP");
    this.#isHanging = this.#child !== undefined;
  }

  resume(): void {
    this.#child?.kill("SIGCONT");
    this.#isHanging = false;
  }

  /** Ends the process at once; connections are refused from then on. Data is lost. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    await this.refreshCalls();
    this.#child = undefined;
    this.#isHanging = false;
    this.#callsBefore += this.#callsNow;
    this.#callsNow = 0;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    if (child.kill("SIGKILL")) await ended;
  }

  /** For the end of the process that started it, where nothing can be awaited. */
  destroy(): void {
    this.#child?.kill("SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Ends the process and removes its folder. */
  async dispose(): Promise<void> {
    await this.stop();
    rmSync(this.#folder, { recursive: true, force: true });
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

  /** Durations of the scripts in its slow log, us; empty when it does not answer. */
  async slowScripts(): Promise<number[]> {
    const log = await this.ask(["SLOWLOG", "GET", "-1"]);
    // Of an entry: number, instant, duration, command and its words.
    const entry = /:\d+\r\n:\d+\r\n:(\d+)\r\n\*\d+\r\n\$\d+\r\neval(?:sha)?\r\n/gi;
    return [...log.matchAll(entry)].map(([, us]) => Number(us));
  }

  /** Sends one command on its own connection. @returns The raw reply; empty for none in time. */
  ask(command: readonly string[]): Promise<string> {
    return new Promise((resolve) => {
      let reply = "";
      const socket = connect(this.port, this.host);
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
      socket.on("close", end);
    });
  }

  #arguments(): string[] {
    const { args = [], sentinel } = this.#options;
    const place = ["--port", String(this.port), "--bind", this.host, "--dir", this.#folder];
    if (sentinel === undefined) return [...place, "--save", "", "--appendonly", "no", ...args];
    // A Sentinel keeps what it learns in its configuration.
    const file = join(this.#folder, "sentinel.conf");
    const lines = [`port ${this.port}`, `bind ${this.host}`, `dir ${this.#folder}`, ...sentinel];
    writeFileSync(file, `${lines.join("\n")}\n`);
    return [file, "--sentinel"];
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
  if (reply.startsWith("*")) return isWholeArray(reply);
  if (!reply.startsWith("$")) return true;
  return reply.length >= lineEnd + 2 + Math.max(-2, Number(reply.slice(1, lineEnd))) + 2;
}

/** Whether all elements of an array, and of those in it, are there. */
function isWholeArray(reply: string): boolean {
  let missing = 1;
  let at = 0;
  while (missing > 0) {
    const lineEnd = reply.indexOf("\r\n", at);
    if (lineEnd < 0) return false;
    const count = Math.max(0, Number(reply.slice(at + 1, lineEnd)));
    const kind = reply[at];
    at = lineEnd + 2;
    missing -= 1;
    if (kind === "*") missing += count;
    if (kind !== "$") continue;
    at += count + 2;
    if (at > reply.length) return false;
  }
  return true;
}
