/**
 * A real Redis (or Valkey) server for tests: on a free port, in a temporary folder, without
 * persistence. Whatever a test does to it, it is killed with the test process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants, mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

const READY_WITHIN_MS = 10_000;
const POLL_MS = 10;
/** Another process may take a port between its choice and the server's start. */
const START_ATTEMPTS = 5;

export interface RedisServerOptions {
  /** A port to use again; a free one by default. */
  readonly port?: number;
  /** Further arguments of redis-server. */
  readonly args?: readonly string[];
}

const running = new Set<RedisServer>();
process.on("exit", () => {
  for (const server of running) server.destroy();
});

/** Starts a server and waits until it answers. @throws {Error} With the server's last words. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  for (let attempt = 1; ; attempt += 1) {
    const server = new RedisServer(options.port ?? (await freePort()), options.args ?? []);
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.stop();
      if (options.port !== undefined || attempt === START_ATTEMPTS) throw error;
    }
  }
}

export class RedisServer {
  readonly host = "127.0.0.1";
  readonly port: number;
  private readonly args: readonly string[];
  private readonly folder = mkdtempSync(join(tmpdir(), "aliquot-redis-"));
  private child: ChildProcess | undefined;
  private output = "";

  constructor(port: number, args: readonly string[]) {
    this.port = port;
    this.args = args;
  }

  get url(): string {
    return `redis://${this.host}:${this.port}/0`;
  }

  /** Starts the process, also again after `stop`, and waits until it answers. */
  async start(): Promise<void> {
    const { port, host, folder } = this;
    const fixed = [
      "--port",
      port,
      "--bind",
      host,
      "--save",
      "",
      "--appendonly",
      "no",
      "--dir",
      folder,
    ];
    this.output = "";
    const child = spawn(serverBinary(), [...fixed.map(String), ...this.args], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.child = child;
    running.add(this);
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (text: Buffer) => {
        this.output = (this.output + text.toString()).slice(-4_000);
      });
    }
    const deadline = Date.now() + READY_WITHIN_MS;
    while (!(await answersPing(port))) {
      if (child.exitCode !== null || Date.now() > deadline) {
        throw new Error(`redis-server on port ${port} did not start:\n${this.output}`);
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  /** Stops answering, as a hanging host does; connections stay open. */
  pause(): void {
    this.child?.kill("SIGSTOP");
  }

  resume(): void {
    this.child?.kill("SIGCONT");
  }

  /** Ends the process at once; connections are refused from then on. Data is lost. */
  async stop(): Promise<void> {
    const child = this.child;
    this.child = undefined;
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await ended;
    }
    running.delete(this);
  }

  /** For the end of the test process, where nothing can be awaited. */
  destroy(): void {
    this.child?.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Ends the process and removes its folder. */
  async dispose(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The server program on PATH. @throws {Error} When there is none. */
export function serverBinary(): string {
  const { PATH = "" } = process.env;
  for (const name of ["redis-server", "valkey-server"]) {
    for (const folder of PATH.split(delimiter)) {
      try {
        accessSync(join(folder, name), constants.X_OK);
        return join(folder, name);
      } catch {
        // Not here; the next folder may have it.
      }
    }
  }
  throw new Error(
    "neither redis-server nor valkey-server is on PATH; run npm test, which sees to it",
  );
}

/** Asks with an inline command, so that nothing of the code under test is involved. */
function answersPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const end = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(1_000, () => end(false));
    socket.on("connect", () => socket.write("PING\r\n"));
    socket.on("data", (data) => end(/^(\+PONG|-NOAUTH)/.test(data.toString())));
    socket.on("error", () => end(false));
    socket.on("close", () => end(false));
  });
}
