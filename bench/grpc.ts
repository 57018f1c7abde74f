/**
 * Envoy's ShouldRateLimit over the Unix socket, against a bare grpc-js server that answers the same
 * bytes in the same run: how many calls a second, and how long they take while Redis is up, hangs,
 * and is gone.
 *
 * As for HTTP the servers share one core and take turns; the client has the other one, and shares
 * it with Redis. What the bare server's calls take at the same pace is the machine's noise.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { RedisServer } from "../fleet/redis-server.ts";
import { WireWriter } from "../src/server/grpc/wire-writer.ts";
import { BARE_GRPC_ARGUMENT } from "./bare-grpc.ts";
import { ClientProcess } from "./client-process.ts";
import { callOnce } from "./grpc-calls.ts";
import { type CallTimes, callTimes, type GrpcSide, SideMeter } from "./grpc-figures.ts";
import {
  GRPC_CLIENT_ARGUMENT,
  type GrpcClient,
  type GrpcCount,
  type GrpcOrder,
} from "./grpc-load.ts";
import { processorUs } from "./processor-time.ts";
import { type BenchSetup, waitingOf } from "./setup.ts";

export type GrpcStore = "embedded" | "redis";
export const GRPC_STORES: readonly GrpcStore[] = ["embedded", "redis"];

/** How a limit is decided while there is a Redis. */
export type GrpcMode = "hybrid" | "exact";
export const GRPC_MODES: readonly GrpcMode[] = ["hybrid", "exact"];

export type RedisState = "up" | "hanging" | "stopped";
export const REDIS_STATES: readonly RedisState[] = ["up", "hanging", "stopped"];

/** Calls due a second while their time is measured. */
export const PACED_PER_SECOND = 2_000;

const SIDECAR = fileURLToPath(new URL("../src/main.js", import.meta.url));
/** Envoy has one connection for each of its workers. */
const CONNECTIONS = 2;
const AT_ONCE = 64;
const WARM_CALLS = 20_000;
const KEYS = 1_000;
const READY_WITHIN_MS = 10_000;

/** Calls per second. Starts and stops all its processes. */
export async function measureGrpcCalls(
  store: GrpcStore,
  setup: BenchSetup,
): Promise<{ readonly ours: GrpcSide; readonly bare: GrpcSide }> {
  const stage = await Stage.open(setup, store === "redis");
  try {
    const load = { atOnce: AT_ONCE };
    const [ours, bare] = [new SideMeter(), new SideMeter()];
    const sides: [Served, SideMeter][] = [
      [stage.ours, ours],
      [stage.bare, bare],
    ];
    await stage.warmUp("hybrid", load);
    for (let round = 0; round < setup.rounds.count; round += 1) {
      for (const [server, meter] of sides) {
        const before = processorUs(server.pid);
        const startMs = performance.now();
        const count = await stage.run(server, "hybrid", load);
        const spentUs = processorUs(server.pid) - before;
        const notOk = count.failed + count.denied;
        if (notOk > 0) throw new Error(`${notOk} calls were not answered OK`);
        meter.add(count, spentUs, (performance.now() - startMs) * 1_000);
      }
    }
    return { ours: ours.told(), bare: bare.told() };
  } finally {
    await stage.close();
  }
}

export interface StateTimes {
  readonly state: RedisState;
  readonly ours: CallTimes;
  readonly bare: CallTimes;
}

/**
 * How long calls take at a steady pace, in every state of Redis. The first round of a state begins
 * as soon as Redis has entered it, so that the time until the sidecar notices counts as well.
 */
export async function measureGrpcTimes(mode: GrpcMode, setup: BenchSetup): Promise<StateTimes[]> {
  const stage = await Stage.open(setup, true);
  const load = { perSecond: PACED_PER_SECOND, waiting: waitingOf(setup, true) };
  try {
    await stage.warmUp(mode, load);
    const states: StateTimes[] = [];
    for (const state of REDIS_STATES) {
      if (state === "hanging") stage.redis?.pause();
      if (state === "stopped") await stage.redis?.stop();
      const [ours, bare]: [GrpcCount[], GrpcCount[]] = [[], []];
      for (let round = 0; round < setup.rounds.count; round += 1) {
        ours.push(await stage.run(stage.ours, mode, load));
        bare.push(await stage.run(stage.bare, mode, load));
      }
      states.push({ state, ours: callTimes(ours), bare: callTimes(bare) });
    }
    return states;
  } finally {
    await stage.close();
  }
}

interface Served {
  readonly path: string;
  readonly pid: number;
}

/** The processes of one measurement. */
class Stage {
  readonly ours: Served;
  readonly bare: Served;
  readonly redis: RedisServer | undefined;
  readonly #parts: StageParts;

  private constructor(parts: StageParts, ours: Served, bare: Served) {
    this.#parts = parts;
    this.ours = ours;
    this.bare = bare;
    this.redis = parts.redis;
  }

  static async open(setup: BenchSetup, hasRedis: boolean): Promise<Stage> {
    const folder = mkdtempSync(join(tmpdir(), "aliquot-bench-"));
    const redis = hasRedis ? await RedisServer.start(folder) : undefined;
    const { main, clientCommand } = setup;
    const client: GrpcClient = new ClientProcess(main, clientCommand, [GRPC_CLIENT_ARGUMENT]);
    const parts: StageParts = { setup, folder, redis, client, children: [] };
    process.once("exit", () => endAll(parts));
    try {
      const config = join(folder, "config.yaml");
      const [path, barePath] = [join(folder, "ours.sock"), join(folder, "bare.sock")];
      writeFileSync(join(folder, "rules.yaml"), RULES);
      writeFileSync(config, configOf(folder, path, redis?.url));
      const pid = spawnNode(parts, [SIDECAR, "serve", "--config", config]);
      const answer = (await untilAnswered(path, requestOf("hybrid", 0))).toString("base64");
      const argument = JSON.stringify({ path: barePath, answer });
      const barePid = spawnNode(parts, [setup.main, BARE_GRPC_ARGUMENT, argument]);
      await untilAnswered(barePath, requestOf("hybrid", 0));
      return new Stage(parts, { path, pid }, { path: barePath, pid: barePid });
    } catch (error) {
      await redis?.stop();
      endAll(parts);
      throw error;
    }
  }

  /**
   * So many calls to each that their code is compiled, however slow the machine is. At the pace
   * that is measured: a flood leaves garbage behind, and collecting it would be a pause of the next
   * rounds that their own pace does not make.
   */
  async warmUp(mode: GrpcMode, load: GrpcOrder["load"]): Promise<void> {
    for (const server of [this.ours, this.bare]) {
      for (let calls = 0; calls < WARM_CALLS; ) {
        calls += (await this.run(server, mode, load)).answers;
      }
    }
  }

  run(server: Served, mode: GrpcMode, load: GrpcOrder["load"]): Promise<GrpcCount> {
    const requests = Array.from({ length: KEYS }, (_, index) => requestOf(mode, index));
    const { seconds } = this.#parts.setup.rounds;
    const { path } = server;
    return this.#parts.client.run({ path, requests, connections: CONNECTIONS, load, seconds });
  }

  async close(): Promise<void> {
    await this.redis?.stop();
    endAll(this.#parts);
  }
}

interface StageParts {
  readonly setup: BenchSetup;
  readonly folder: string;
  readonly redis: RedisServer | undefined;
  readonly client: GrpcClient;
  readonly children: ChildProcess[];
}

function endAll({ folder, redis, client, children }: StageParts): void {
  client.close();
  for (const child of children) child.kill("SIGKILL");
  if (redis?.pid !== undefined) process.kill(redis.pid, "SIGKILL");
  rmSync(folder, { recursive: true, force: true });
}

/** @returns The process id. */
function spawnNode({ setup, children }: StageParts, args: readonly string[]): number {
  const [program = "", ...rest] = [...(setup.serverCommand ?? []), process.execPath, ...args];
  const { PATH = "" } = process.env;
  const child = spawn(program, rest, { stdio: ["ignore", "ignore", "inherit"], env: { PATH } });
  children.push(child);
  return child.pid ?? 0;
}

async function untilAnswered(path: string, request: Buffer): Promise<Buffer> {
  const deadline = performance.now() + READY_WITHIN_MS;
  for (;;) {
    try {
      return await callOnce(path, request);
    } catch (error) {
      if (performance.now() > deadline) {
        throw new Error("a server of the benchmark does not answer", { cause: error });
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** Limits that are never reached, so that every answer has about the same bytes. */
const RULES = `domain: bench
descriptors:
  - key: hybrid
    rate_limit: { unit: second, requests_per_unit: 1000000 }
    aliquot: { mode: hybrid }
  - key: exact
    rate_limit: { unit: second, requests_per_unit: 1000000 }
    aliquot: { mode: exact }
`;

/** A request with one descriptor, `hybrid=user-1` or the like. */
function requestOf(mode: GrpcMode, index: number): Buffer {
  const writer = new WireWriter();
  writer.text(1, "bench");
  writer.message(2, () =>
    writer.message(1, () => {
      writer.text(1, mode);
      writer.text(2, `user-${index}`);
    }),
  );
  return writer.finish();
}

function configOf(folder: string, socket: string, redisUrl: string | undefined): string {
  return [
    "version: 1",
    "fleet: bench",
    "listen:",
    `  http: { socket: ${join(folder, "http.sock")}, tcp: "off" }`,
    `  grpc: { socket: ${socket} }`,
    '  ops: "off"',
    ...(redisUrl === undefined ? [] : ["redis:", `  url: ${redisUrl}`]),
    "log_level: error",
    `envoy: { domains: ["${join(folder, "rules.yaml")}"] }`,
    "",
  ].join("\n");
}
