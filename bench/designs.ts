/**
 * Aliquot against the designs that it replaces, in turns on the same Redis, with hot keys: checks
 * per second as fast as they go, times at a pace that all of them keep, and what Redis has to do.
 *
 * The one who decides has a core of its own where there are two. The other holds the load and
 * Redis; the script in process has no server, so its process is load and decider in one.
 */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { RedisServer } from "../fleet/redis-server.ts";
import {
  type Asker,
  type AskerRound,
  type AskerTimes,
  askClosed,
  askPaced,
  HttpAsker,
} from "./asker.ts";
import { askOnce } from "./closed-loop.ts";
import type { HttpSetup } from "./http.ts";
import { processorUs } from "./processor-time.ts";
import { FLEXIBLE_ARGUMENT, LuaAsker, RATE } from "./redis-per-check.ts";

/** `batch`: Aliquot as well, with `BATCH_CHECKS` checks to a request. */
export type Design = "lua" | "flexible" | "aliquot" | "batch";
export const DESIGNS: readonly Design[] = ["lua", "flexible", "aliquot", "batch"];

export const ASKER_ARGUMENT = "--as-asker";

/** Checks a second of the paced rounds. */
export const DESIGN_PACE = 2_000;
const BATCH_CHECKS = 100;
const KEYS = Array.from({ length: 10 }, (_, index) => `hot-${index}`);
const CONNECTIONS = 64;
const READY_WITHIN_MS = 10_000;
const SIDECAR = fileURLToPath(new URL("../src/main.js", import.meta.url));

export interface DesignFigures {
  readonly design: Design;
  /** Checks per second of each round, as fast as they go. */
  readonly perSecond: readonly number[];
  /** Redis calls and Redis processor time per check in those rounds. */
  readonly callsPerCheck: number;
  readonly redisUsPerCheck: number;
  /** Processor time of the process that decides, per check in those rounds. */
  readonly deciderUsPerCheck: number;
  /** Times of each paced round; none for batches. */
  readonly times: readonly AskerTimes[];
}

interface AskerSetup {
  readonly design: Design;
  readonly url: string;
  readonly path: string;
}

interface AskerOrder {
  readonly seconds: number;
  readonly pace: number | undefined;
}

/** Measures all designs in alternating rounds; starts and stops all processes. */
export async function measureDesigns(setup: HttpSetup): Promise<DesignFigures[]> {
  const folder = mkdtempSync(join(tmpdir(), "aliquot-bench-"));
  const redis = await RedisServer.start(folder);
  const children: ChildProcess[] = [];
  const killAll = (): void => {
    for (const child of children) child.kill("SIGKILL");
    if (redis.pid !== undefined) process.kill(redis.pid, "SIGKILL");
  };
  process.once("exit", killAll);
  try {
    pinRedis(redis, setup.clientCommand);
    const deciders = await startDeciders(folder, redis.url, setup, children);
    const courses = DESIGNS.map((design) => {
      const path = join(folder, design === "flexible" ? "flexible.sock" : "ours.sock");
      const isServer = design !== "lua";
      const command = isServer ? setup.clientCommand : setup.serverCommand;
      const asker = new AskerProcess(setup.main, command, { design, url: redis.url, path });
      children.push(asker.child);
      const server = design === "flexible" ? deciders.flexible : deciders.ours;
      const decider = isServer ? server : asker.child;
      return new Course(design, asker, decider.pid ?? 0, redis);
    });
    const { count, seconds } = setup.rounds;
    for (let round = 0; round <= count; round += 1) {
      // The first round of each warms it up.
      for (const course of courses) await course.round(seconds, round > 0);
    }
    return courses.map((course) => course.figures());
  } finally {
    for (const child of children) child.kill("SIGKILL");
    await redis.stop();
    process.off("exit", killAll);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** One design, round by round. */
class Course {
  readonly #design: Design;
  readonly #asker: AskerProcess;
  readonly #deciderPid: number;
  readonly #redis: RedisServer;
  readonly #perSecond: number[] = [];
  readonly #times: AskerTimes[] = [];
  #checks = 0;
  #calls = 0;
  #redisUs = 0;
  #deciderUs = 0;

  constructor(design: Design, asker: AskerProcess, deciderPid: number, redis: RedisServer) {
    this.#design = design;
    this.#asker = asker;
    this.#deciderPid = deciderPid;
    this.#redis = redis;
  }

  async round(seconds: number, isCounted: boolean): Promise<void> {
    const before = await this.#read();
    const closed = (await this.#asker.run({ seconds, pace: undefined })) as AskerRound;
    const after = await this.#read();
    const isBatch = this.#design === "batch";
    const pace = DESIGN_PACE;
    const paced = isBatch ? undefined : ((await this.#asker.run({ seconds, pace })) as AskerTimes);
    const wrong = closed.wrong + (paced?.wrong ?? 0);
    if (wrong > 0) throw new Error(`${wrong} checks of ${this.#design} were not admitted`);
    if (!isCounted) return;
    const perSecond = closed.perSecond * (isBatch ? BATCH_CHECKS : 1);
    this.#perSecond.push(perSecond);
    if (paced !== undefined) this.#times.push(paced);
    this.#checks += perSecond * seconds;
    this.#calls += after.calls - before.calls;
    this.#redisUs += after.redisUs - before.redisUs;
    this.#deciderUs += after.deciderUs - before.deciderUs;
  }

  figures(): DesignFigures {
    return {
      design: this.#design,
      perSecond: this.#perSecond,
      callsPerCheck: this.#calls / this.#checks,
      redisUsPerCheck: this.#redisUs / this.#checks,
      deciderUsPerCheck: this.#deciderUs / this.#checks,
      times: this.#times,
    };
  }

  async #read(): Promise<{ calls: number; redisUs: number; deciderUs: number }> {
    await this.#redis.refreshCalls();
    return {
      calls: this.#redis.scriptCalls,
      redisUs: processorUs(this.#redis.pid ?? 0),
      deciderUs: processorUs(this.#deciderPid),
    };
  }
}

/** The load in a process of its own. */
class AskerProcess {
  readonly child: ChildProcess;

  constructor(main: string, command: readonly string[] | undefined, setup: AskerSetup) {
    const [execPath, ...execArgv] = command === undefined ? [] : [...command, process.execPath];
    const pinned = execPath === undefined ? {} : { execPath, execArgv };
    this.child = fork(main, [ASKER_ARGUMENT, JSON.stringify(setup)], pinned);
  }

  run(order: AskerOrder): Promise<AskerRound | AskerTimes> {
    return new Promise((resolve, reject) => {
      const onExit = (): void => reject(new Error("the load of the benchmark died"));
      this.child.once("exit", onExit);
      this.child.once("message", (told: AskerRound | AskerTimes) => {
        this.child.off("exit", onExit);
        resolve(told);
      });
      this.child.send(order);
    });
  }
}

/** Runs in the process that `AskerProcess` started. */
export function runAsker(argument: string): void {
  const setup = JSON.parse(argument) as AskerSetup;
  const asker = askerOf(setup);
  process.on("message", ({ seconds, pace }: AskerOrder) => {
    const round =
      pace === undefined ? askClosed(asker, CONNECTIONS, seconds) : askPaced(asker, pace, seconds);
    void round.then((told) => process.send?.(told));
  });
  process.once("disconnect", () => asker.close());
}

function askerOf({ design, url, path }: AskerSetup): Asker {
  if (design === "lua") return new LuaAsker(url, KEYS);
  const isBatch = design === "batch";
  const isRight = (status: number, body: string): boolean =>
    status === 200 &&
    (isBatch ? !body.includes('"allowed":false') : body.includes('"allowed":true'));
  return new HttpAsker(
    { path },
    isBatch ? [batchRequest()] : KEYS.map(getRequest),
    CONNECTIONS,
    isRight,
  );
}

function getRequest(key: string): string {
  return `GET /v1/check?limit=bench&key=${key} HTTP/1.1\r\nHost: bench\r\n\r\n`;
}

function batchRequest(): string {
  const requests = Array.from({ length: BATCH_CHECKS }, (_, index) => ({
    limit: "bench",
    key: KEYS[index % KEYS.length],
    cost: 1,
  }));
  const json = JSON.stringify({ requests });
  return (
    "POST /v1/check/batch HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n" +
    `Content-Length: ${json.length}\r\n\r\n${json}`
  );
}

async function startDeciders(
  folder: string,
  redisUrl: string,
  { main, serverCommand }: HttpSetup,
  children: ChildProcess[],
): Promise<{ readonly ours: ChildProcess; readonly flexible: ChildProcess }> {
  const start = (args: readonly string[]): ChildProcess => {
    const [program = "", ...rest] = [...(serverCommand ?? []), process.execPath, ...args];
    const { PATH = "" } = process.env;
    const child = spawn(program, rest, { stdio: "ignore", env: { PATH } });
    children.push(child);
    return child;
  };
  const config = join(folder, "config.yaml");
  writeFileSync(config, configOf(join(folder, "ours.sock"), redisUrl));
  const ours = start([SIDECAR, "serve", "--config", config]);
  const flexiblePath = join(folder, "flexible.sock");
  const flexible = start([
    main,
    FLEXIBLE_ARGUMENT,
    JSON.stringify({ path: flexiblePath, redisUrl }),
  ]);
  for (const path of [join(folder, "ours.sock"), flexiblePath]) await untilAnswered(path);
  return { ours, flexible };
}

async function untilAnswered(path: string): Promise<void> {
  const deadline = performance.now() + READY_WITHIN_MS;
  for (;;) {
    try {
      await askOnce({ path }, getRequest("hot-0"));
      return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** Redis shares the core of the load. */
function pinRedis(redis: RedisServer, command: readonly string[] | undefined): void {
  const core = command?.at(-1);
  if (core === undefined || redis.pid === undefined) return;
  spawn("taskset", ["-a", "-p", "-c", core, String(redis.pid)], { stdio: "ignore" });
}

function configOf(socket: string, redisUrl: string): string {
  return [
    "version: 1",
    "fleet: bench",
    "listen:",
    `  http: { socket: ${socket}, tcp: "off" }`,
    '  grpc: { socket: "off" }',
    '  ops: "off"',
    "redis:",
    `  url: ${redisUrl}`,
    "log_level: error",
    "limits:",
    `  - { name: bench, rate: ${RATE}/s, burst: ${RATE}, mode: hybrid }`,
    "",
  ].join("\n");
}
