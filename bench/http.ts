/**
 * Checks per second over HTTP, as a ratio to a bare `node:http` server that answers the same bytes
 * in the same run: the ratio says what the sidecar adds to what any Node server costs, and hardly
 * depends on the machine.
 *
 * Servers share one core and the client has the other; the servers take turns, and the one that is
 * not asked is idle.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../fleet/free-port.ts";
import { RedisServer } from "../fleet/redis-server.ts";
import type { AskerTimes } from "./asker.ts";
import { BARE_ARGUMENT, bareAnswerOf } from "./bare-server.ts";
import { ClientProcess } from "./client-process.ts";
import {
  type Address,
  askOnce,
  CLIENT_ARGUMENT,
  type ClosedLoop,
  type LoadOrder,
} from "./closed-loop.ts";
import { PACED_CLIENT_ARGUMENT, type PacedClient, pacedInTurn } from "./paced-client.ts";
import { spreadOf } from "./rounds.ts";
import { type BenchSetup, waitingOf } from "./setup.ts";

export interface HttpCase {
  readonly store: "embedded" | "redis";
  readonly transport: "unix" | "tcp";
  /** `batch`: POST of `BATCH_CHECKS` independent checks. */
  readonly method: "POST" | "GET" | "batch";
}

export interface ServerRounds {
  /** Answers per second of each round. */
  readonly perSecond: readonly number[];
  /** Answers per second of the server's processor time, over all rounds. */
  readonly perProcessorSecond: number;
  /** Part of a core that the server used; well below 1 the client or a neighbour was in its way. */
  readonly busy: number;
}

/** Rounds of an open loop; the same pace for both servers. */
export interface HttpTimes {
  readonly perSecond: number;
  readonly ours: readonly AskerTimes[];
  readonly bare: readonly AskerTimes[];
}

export interface HttpRounds {
  readonly ours: ServerRounds;
  readonly bare: ServerRounds;
  /** At half of the rate that the slower of the two reached; of some cases. */
  readonly times?: HttpTimes;
}

export const HTTP_CASES: readonly HttpCase[] = [
  { store: "embedded", transport: "unix", method: "POST" },
  { store: "embedded", transport: "unix", method: "GET" },
  { store: "embedded", transport: "unix", method: "batch" },
  { store: "embedded", transport: "tcp", method: "POST" },
  { store: "embedded", transport: "tcp", method: "GET" },
  { store: "redis", transport: "unix", method: "POST" },
];

/** Checks of one batch. */
export const BATCH_CHECKS = 100;

const SIDECAR = fileURLToPath(new URL("../src/main.js", import.meta.url));
const CONNECTIONS = 128;
const KEYS = 1_000;
const READY_WITHIN_MS = 10_000;
/** USER_HZ of Linux on every architecture that Node runs on. */
const TICKS_PER_SECOND = 100;

/** Measures one case; starts and stops all its processes. */
export async function measureHttp(httpCase: HttpCase, setup: BenchSetup): Promise<HttpRounds> {
  const folder = mkdtempSync(join(tmpdir(), "aliquot-bench-"));
  const children: ChildProcess[] = [];
  const { main, clientCommand } = setup;
  const client: ClosedLoop = new ClientProcess(main, clientCommand, [CLIENT_ARGUMENT]);
  const redis = httpCase.store === "redis" ? await RedisServer.start(folder) : undefined;
  const killAll = (): void => {
    for (const child of children) child.kill("SIGKILL");
    if (redis?.pid !== undefined) process.kill(redis.pid, "SIGKILL");
  };
  process.once("exit", killAll);
  try {
    const pair = await startPair(folder, httpCase, setup, redis?.url, children);
    const order = { requests: requestsOf(httpCase), connections: CONNECTIONS };
    const { count, seconds } = setup.rounds;
    const meters = [new ServerMeter(pair.ours), new ServerMeter(pair.bare)] as const;
    // The first round of each warms it up.
    for (let round = 0; round <= count; round += 1) {
      for (const meter of meters) await meter.round({ ...order, seconds }, client, round > 0);
    }
    const told = { ours: meters[0].rounds(), bare: meters[1].rounds() };
    if (!isTimed(httpCase)) return told;
    return { ...told, times: await timesOf(pair, order, halfOfPeak(told), setup) };
  } finally {
    client.close();
    for (const child of children) child.kill("SIGKILL");
    await redis?.stop();
    process.off("exit", killAll);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Without Redis the client has a core to itself and can keep its pace. */
function isTimed({ store, transport, method }: HttpCase): boolean {
  return store === "embedded" && transport === "unix" && method !== "batch";
}

/** Half of the answers per second that both servers reached. */
export function halfOfPeak({ ours, bare }: HttpRounds): number {
  const peaks = [ours, bare].map(({ perSecond }) => spreadOf(perSecond).median);
  return Math.round(Math.min(...peaks) / 2);
}

async function timesOf(
  { ours, bare }: Pair,
  order: Pick<LoadOrder, "requests" | "connections">,
  perSecond: number,
  setup: BenchSetup,
): Promise<HttpTimes> {
  const { main, clientCommand, rounds } = setup;
  const client: PacedClient = new ClientProcess(main, clientCommand, [PACED_CLIENT_ARGUMENT]);
  const pace = { perSecond, seconds: rounds.seconds, waiting: waitingOf(setup, false) };
  try {
    const sides = [ours, bare].map(
      ({ address }) =>
        () =>
          client.run({ ...order, ...pace, address }),
    );
    const [oursTimes = [], bareTimes = []] = await pacedInTurn(sides, rounds.count);
    return { perSecond, ours: oursTimes, bare: bareTimes };
  } finally {
    client.close();
  }
}

interface Server {
  readonly address: Address;
  readonly pid: number;
}

interface Pair {
  readonly ours: Server;
  readonly bare: Server;
}

/** Counts the answers and the processor time of one server. */
class ServerMeter {
  readonly #server: Server;
  readonly #perSecond: number[] = [];
  #answers = 0;
  #processorSeconds = 0;
  #seconds = 0;

  constructor(server: Server) {
    this.#server = server;
  }

  async round(
    order: Omit<LoadOrder, "address">,
    client: ClosedLoop,
    isCounted: boolean,
  ): Promise<void> {
    const { address, pid } = this.#server;
    const before = processorSeconds(pid);
    const { perSecond, strange } = await client.run({ ...order, address });
    if (strange > 0) throw new Error(`${strange} answers had another status than 200`);
    if (!isCounted) return;
    this.#perSecond.push(perSecond);
    this.#answers += perSecond * order.seconds;
    this.#processorSeconds += processorSeconds(pid) - before;
    this.#seconds += order.seconds;
  }

  rounds(): ServerRounds {
    return {
      perSecond: this.#perSecond,
      perProcessorSecond: this.#answers / this.#processorSeconds,
      busy: this.#processorSeconds / this.#seconds,
    };
  }
}

async function startPair(
  folder: string,
  httpCase: HttpCase,
  { main, serverCommand }: BenchSetup,
  redisUrl: string | undefined,
  children: ChildProcess[],
): Promise<Pair> {
  const [port, barePort] = [await freePort(), await freePort()];
  const [path, barePath] = [join(folder, "ours.sock"), join(folder, "bare.sock")];
  const config = join(folder, "config.yaml");
  writeFileSync(config, configOf(path, port, redisUrl));
  const start = (args: readonly string[]): ChildProcess => {
    const [program = "", ...rest] = [...(serverCommand ?? []), process.execPath, ...args];
    const { PATH = "" } = process.env;
    const child = spawn(program, rest, { stdio: "ignore", env: { PATH } });
    children.push(child);
    return child;
  };
  const isUnix = httpCase.transport === "unix";
  const ours = isUnix ? { path } : { port };
  const child = start([SIDECAR, "serve", "--config", config]);
  const answer = await untilAnswered(ours, requestsOf(httpCase)[0] ?? "", child);
  const baseline = { path: barePath, port: barePort, answer: bareAnswerOf(answer) };
  const bareChild = start([main, BARE_ARGUMENT, JSON.stringify(baseline)]);
  const bare = isUnix ? { path: barePath } : { port: barePort };
  await untilAnswered(bare, requestsOf(httpCase)[0] ?? "", bareChild);
  return {
    ours: { address: ours, pid: child.pid ?? 0 },
    bare: { address: bare, pid: bareChild.pid ?? 0 },
  };
}

async function untilAnswered(
  address: Address,
  request: string,
  child: ChildProcess,
): Promise<string> {
  const deadline = performance.now() + READY_WITHIN_MS;
  for (;;) {
    try {
      return await askOnce(address, request);
    } catch (error) {
      if (child.exitCode !== null || performance.now() > deadline) {
        throw new Error("a server of the benchmark does not answer", { cause: error });
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

function requestsOf({ method }: HttpCase): string[] {
  return Array.from({ length: KEYS }, (_, index) => {
    if (method === "GET") {
      return `GET /v1/check?limit=bench&key=user-${index} HTTP/1.1\r\nHost: aliquot\r\n\r\n`;
    }
    if (method === "POST") return postOf("/v1/check", checkOf(index));
    const requests = Array.from({ length: BATCH_CHECKS }, (__, item) => checkOf(index + item));
    return postOf("/v1/check/batch", { requests });
  });
}

function checkOf(index: number): object {
  return { limit: "bench", key: `user-${index % KEYS}`, cost: 1 };
}

function postOf(path: string, body: object): string {
  const json = JSON.stringify(body);
  return (
    `POST ${path} HTTP/1.1\r\nHost: aliquot\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${json.length}\r\n\r\n${json}`
  );
}

/** A limit that is never reached, so that every answer has about the same bytes. */
function configOf(socket: string, port: number, redisUrl: string | undefined): string {
  return [
    "version: 1",
    "fleet: bench",
    "listen:",
    `  http: { socket: ${socket}, tcp: "127.0.0.1:${port}" }`,
    '  grpc: { socket: "off" }',
    '  ops: "off"',
    ...(redisUrl === undefined ? [] : ["redis:", `  url: ${redisUrl}`]),
    "log_level: error",
    "limits:",
    "  - { name: bench, rate: 1000000/s, burst: 1000000 }",
    "",
  ].join("\n");
}

/** Processor time of a process so far, user and system. */
function processorSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  // The name in brackets may hold spaces; the fields are counted behind it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
