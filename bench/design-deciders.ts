/** The processes that decide in the comparison of designs, and the Redis that they share. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../fleet/free-port.ts";
import { RedisServer } from "../fleet/redis-server.ts";
import { askOnce } from "./closed-loop.ts";
import { type DesignName, type Places, RATE } from "./design.ts";
import { getRequest } from "./design-load.ts";
import { PER_CHECK_ARGUMENT, type PerCheckSetup } from "./per-check-server.ts";
import { type BenchSetup, moveTo } from "./setup.ts";

const READY_WITHIN_MS = 10_000;
const ASK_AGAIN_MS = 20;
const SIDECAR = fileURLToPath(new URL("../src/main.js", import.meta.url));

export class Deciders {
  readonly redis: RedisServer;
  readonly places: Places;
  readonly #folder: string;
  readonly #setup: BenchSetup;
  readonly #children = new Map<"lua" | "flexible" | "aliquot", ChildProcess>();
  readonly #onExit: () => void = () => this.#killAll();

  private constructor(setup: BenchSetup, folder: string, redis: RedisServer, respPort: number) {
    this.#setup = setup;
    this.#folder = folder;
    this.redis = redis;
    this.places = {
      redisUrl: redis.url,
      flexiblePath: join(folder, "flexible.sock"),
      luaPath: join(folder, "lua.sock"),
      httpPath: join(folder, "http.sock"),
      respPath: join(folder, "resp.sock"),
      respPort,
    };
  }

  /** Starts all and waits until they answer. @throws {Error} When one does not. */
  static async start(setup: BenchSetup): Promise<Deciders> {
    const folder = mkdtempSync(join(tmpdir(), "aliquot-bench-"));
    const redis = await RedisServer.start(folder);
    const deciders = new Deciders(setup, folder, redis, await freePort());
    process.once("exit", deciders.#onExit);
    try {
      await deciders.#startAll();
      return deciders;
    } catch (error) {
      await deciders.stop();
      throw error;
    }
  }

  /**
   * The server of a design; undefined where Redis itself is asked. A sidecar that is asked by the
   * application's own client changes places with Redis: it has the core that Redis has when that
   * is asked, since the client needs the other one.
   */
  serverOf(name: DesignName): number | undefined {
    if (name === "lua in process") return undefined;
    const { serverCommand, clientCommand } = this.#setup;
    if (name === "lua service") return this.#pid("lua");
    if (name === "flexible service") return this.#pid("flexible");
    moveTo(name === "aliquot by ioredis" ? clientCommand : serverCommand, this.#pid("aliquot"));
    return this.#pid("aliquot");
  }

  async stop(): Promise<void> {
    process.off("exit", this.#onExit);
    for (const child of this.#children.values()) child.kill("SIGKILL");
    await this.redis.dispose();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #startAll(): Promise<void> {
    const { luaPath, flexiblePath, httpPath, redisUrl } = this.places;
    moveTo(this.#setup.clientCommand, this.redis.pid ?? 0);
    const config = join(this.#folder, "config.yaml");
    writeFileSync(config, configOf(this.places));
    this.#children.set("aliquot", this.#start([SIDECAR, "serve", "--config", config]));
    for (const [by, path] of [
      ["lua", luaPath],
      ["flexible", flexiblePath],
    ] as const) {
      const setup: PerCheckSetup = { path, redisUrl, by };
      const args = [this.#setup.main, PER_CHECK_ARGUMENT, JSON.stringify(setup)];
      this.#children.set(by, this.#start(args));
    }
    for (const path of [httpPath, luaPath, flexiblePath]) await untilAnswered(path);
  }

  #start(args: readonly string[]): ChildProcess {
    const { serverCommand = [] } = this.#setup;
    const [program = "", ...rest] = [...serverCommand, process.execPath, ...args];
    const { PATH = "" } = process.env;
    return spawn(program, rest, { stdio: "ignore", env: { PATH } });
  }

  #pid(name: "lua" | "flexible" | "aliquot"): number {
    return this.#children.get(name)?.pid ?? 0;
  }

  #killAll(): void {
    for (const child of this.#children.values()) child.kill("SIGKILL");
    this.redis.destroy();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function untilAnswered(path: string): Promise<void> {
  const deadline = performance.now() + READY_WITHIN_MS;
  for (;;) {
    try {
      await askOnce({ path }, getRequest("hot-0"));
      return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
    }
  }
}

function configOf({ httpPath, respPath, respPort, redisUrl }: Places): string {
  return [
    "version: 1",
    "fleet: bench",
    "listen:",
    `  http: { socket: ${httpPath}, tcp: "off" }`,
    '  grpc: { socket: "off" }',
    `  resp: { socket: ${respPath}, tcp: "127.0.0.1:${respPort}" }`,
    '  ops: "off"',
    "redis:",
    `  url: ${redisUrl}`,
    "log_level: error",
    "limits:",
    `  - { name: bench, rate: ${RATE}/s, burst: ${RATE}, mode: hybrid }`,
    "",
  ].join("\n");
}
