/**
 * Checks per second over RESP, beside a bare server on the same socket that answers constants in
 * the same run. What counts is the server's processor time for a check: a client that pipelines a
 * hundred of them costs about as much as the server, so that neither has a core to itself.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { RedisServer } from "../fleet/redis-server.ts";
import { BARE_RESP_ARGUMENT, type BareResp } from "./bare-resp.ts";
import { ClientProcess } from "./client-process.ts";
import type { LoadCount } from "./closed-loop.ts";
import { processorUs } from "./processor-time.ts";
import { commandOf, RESP_CLIENT_ARGUMENT, type RespOrder } from "./resp-load.ts";
import type { BenchSetup } from "./setup.ts";

export interface RespCase {
  readonly store: "embedded" | "redis";
  readonly command: "ALIQUOT.CHECK" | "CL.THROTTLE";
  /** Requests of one pipeline; 1 for one at a time. */
  readonly depth: number;
}

export interface RespSide {
  /** Checks per second of each round. */
  readonly perSecond: readonly number[];
  /** The server's processor time per check, in us, of each round: all its threads. */
  readonly processorUs: readonly number[];
}

export interface RespRounds {
  readonly ours: RespSide;
  readonly bare: RespSide;
}

export const RESP_CASES: readonly RespCase[] = [
  { store: "embedded", command: "ALIQUOT.CHECK", depth: 100 },
  { store: "embedded", command: "CL.THROTTLE", depth: 100 },
  { store: "embedded", command: "ALIQUOT.CHECK", depth: 1 },
  { store: "redis", command: "ALIQUOT.CHECK", depth: 100 },
];

const SIDECAR = fileURLToPath(new URL("../src/main.js", import.meta.url));
const KEYS = 1_000;
const PIPELINES = 50;
/** A pipeline keeps its connection busy; single requests need many connections. */
const CONNECTIONS = { pipelined: 8, single: 64 };
const READY_WITHIN_MS = 10_000;

type RespClient = ClientProcess<RespOrder, LoadCount>;

interface Server {
  readonly path: string;
  readonly pid: number;
}

/** Measures one case; starts and stops all its processes. */
export async function measureResp(respCase: RespCase, setup: BenchSetup): Promise<RespRounds> {
  const folder = mkdtempSync(join(tmpdir(), "aliquot-bench-"));
  const children: ChildProcess[] = [];
  const { main, clientCommand } = setup;
  const client: RespClient = new ClientProcess(main, clientCommand, [RESP_CLIENT_ARGUMENT]);
  const redis = respCase.store === "redis" ? await RedisServer.start(folder) : undefined;
  const killAll = (): void => {
    for (const child of children) child.kill("SIGKILL");
    if (redis?.pid !== undefined) process.kill(redis.pid, "SIGKILL");
  };
  process.once("exit", killAll);
  try {
    const { ours, bare } = await startPair(folder, respCase, setup, redis?.url, children);
    const sides = [new SideMeter(ours), new SideMeter(bare)] as const;
    const order = orderOf(respCase, setup.rounds.seconds);
    // The first round of each warms it up.
    for (let round = 0; round <= setup.rounds.count; round += 1) {
      for (const side of sides) await side.round(order, client, round > 0);
    }
    return { ours: sides[0].told(), bare: sides[1].told() };
  } finally {
    client.close();
    for (const child of children) child.kill("SIGKILL");
    await redis?.stop();
    process.off("exit", killAll);
    rmSync(folder, { recursive: true, force: true });
  }
}

class SideMeter {
  readonly #server: Server;
  readonly #perSecond: number[] = [];
  readonly #processorUs: number[] = [];

  constructor(server: Server) {
    this.#server = server;
  }

  async round(
    order: Omit<RespOrder, "path">,
    client: RespClient,
    isCounted: boolean,
  ): Promise<void> {
    const { path, pid } = this.#server;
    const before = processorUs(pid);
    const { perSecond } = await client.run({ ...order, path });
    if (!isCounted) return;
    this.#perSecond.push(perSecond);
    this.#processorUs.push((processorUs(pid) - before) / (perSecond * order.seconds));
  }

  told(): RespSide {
    return { perSecond: this.#perSecond, processorUs: this.#processorUs };
  }
}

async function startPair(
  folder: string,
  respCase: RespCase,
  { main, serverCommand }: BenchSetup,
  redisUrl: string | undefined,
  children: ChildProcess[],
): Promise<{ readonly ours: Server; readonly bare: Server }> {
  const [path, barePath] = [join(folder, "ours.sock"), join(folder, "bare.sock")];
  const config = join(folder, "config.yaml");
  writeFileSync(config, configOf(folder, path, redisUrl));
  const start = (args: readonly string[]): ChildProcess => {
    const [program = "", ...rest] = [...(serverCommand ?? []), process.execPath, ...args];
    const { PATH = "" } = process.env;
    const child = spawn(program, rest, { stdio: "ignore", env: { PATH } });
    children.push(child);
    return child;
  };
  const child = start([SIDECAR, "serve", "--config", config]);
  const reply = await untilAnswered(path, requestOf(respCase, 0), child);
  const baseline: BareResp = { path: barePath, reply };
  const bareChild = start([main, BARE_RESP_ARGUMENT, JSON.stringify(baseline)]);
  await untilAnswered(barePath, requestOf(respCase, 0), bareChild);
  return {
    ours: { path, pid: child.pid ?? 0 },
    bare: { path: barePath, pid: bareChild.pid ?? 0 },
  };
}

async function untilAnswered(path: string, request: string, child: ChildProcess): Promise<string> {
  const deadline = performance.now() + READY_WITHIN_MS;
  for (;;) {
    try {
      return await askOnce(path, request);
    } catch (error) {
      if (child.exitCode !== null || performance.now() > deadline) {
        throw new Error("a server of the benchmark does not answer", { cause: error });
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** @returns The reply, which is short and comes in one piece. */
function askOnce(path: string, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path });
    socket.on("error", reject);
    socket.on("connect", () => socket.write(request));
    socket.on("data", (chunk: Buffer) => {
      socket.destroy();
      resolve(chunk.toString("latin1"));
    });
  });
}

function orderOf(respCase: RespCase, seconds: number): Omit<RespOrder, "path"> {
  const { depth } = respCase;
  const pipelines = Array.from({ length: PIPELINES }, (_, pipeline) =>
    Array.from({ length: depth }, (__, place) =>
      requestOf(respCase, (pipeline * depth + place) % KEYS),
    ).join(""),
  );
  const connections = depth === 1 ? CONNECTIONS.single : CONNECTIONS.pipelined;
  return { pipelines, depth, connections, seconds };
}

function requestOf({ command }: RespCase, key: number): string {
  return commandOf(
    command === "ALIQUOT.CHECK"
      ? [command, "bench", `user-${key}`]
      : [command, `user-${key}`, "999999", "1000000", "1"],
  );
}

/** A limit that is never reached, so that every reply has about the same bytes. */
function configOf(folder: string, socket: string, redisUrl: string | undefined): string {
  return [
    "version: 1",
    "fleet: bench",
    "listen:",
    `  http: { socket: ${join(folder, "http.sock")}, tcp: "off" }`,
    '  grpc: { socket: "off" }',
    `  resp: { socket: ${socket} }`,
    '  ops: "off"',
    "resp: { inline_limits: true }",
    ...(redisUrl === undefined ? [] : ["redis:", `  url: ${redisUrl}`]),
    "log_level: error",
    "limits:",
    "  - { name: bench, rate: 1000000/s, burst: 1000000 }",
    "",
  ].join("\n");
}
