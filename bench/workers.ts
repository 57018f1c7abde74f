/**
 * What several workers cost and give: processor time per answer, how evenly connections are spread,
 * what a connection costs, how exactly a limit holds over them, and what one shared table would
 * cost in their place.
 *
 * Processor time and not throughput: where the load generator shares the cores, more workers
 * answer no more, but what each answer costs can still be told.
 */
import { type ChildProcess, fork, spawn } from "node:child_process";
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../fleet/free-port.ts";
import { RedisServer } from "../fleet/redis-server.ts";
import { ClientProcess } from "./client-process.ts";
import { askOnce, CLIENT_ARGUMENT, type ClosedLoop } from "./closed-loop.ts";
import { processorUs } from "./processor-time.ts";

/** `none`: all workers accept from one socket; node:cluster's other way. */
export interface WorkersCase {
  readonly workers: number;
  readonly spread: "in turn" | "by the kernel";
}

export interface WorkersRow extends WorkersCase {
  /** Processor time of all processes of the sidecar per answer, us; one number per round. */
  readonly answerUs: readonly number[];
  /** The same per connection that asks once. */
  readonly connectionUs: readonly number[];
  /** Connections that each worker held, of those that stayed open; of each round. */
  readonly held: readonly (readonly number[])[];
}

export interface AccuracyRow {
  readonly store: "embedded" | "redis";
  readonly workers: number;
  readonly seconds: number;
  readonly asked: number;
  readonly admitted: number;
  /** What one bucket admits in that time, less what it may have admitted before. */
  readonly ideal: number;
  /** By how much the sidecar says that it may exceed it. */
  readonly bound: number;
}

export interface TableRow {
  /** Processor time of both processes for one question and its answer, us; of each round. */
  readonly askUs: readonly number[];
}

export const WORKERS_CASES: readonly WorkersCase[] = [
  { workers: 1, spread: "in turn" },
  { workers: 2, spread: "in turn" },
  { workers: 2, spread: "by the kernel" },
  { workers: 4, spread: "in turn" },
  { workers: 4, spread: "by the kernel" },
];

export const TABLE_ARGUMENT = "--as-table";

const SIDECAR = fileURLToPath(new URL("../src/main.js", import.meta.url));
const CONNECTIONS = 32;
const SHORT_CONNECTIONS = 1_000;
const SHORT_AT_ONCE = 8;
const READY_WITHIN_MS = 30_000;
const RATE = 1_000;
const BURST = 1_000;
const QUESTIONS = 20_000;

/** Measures one way of spreading; starts and stops its sidecar. */
export async function measureWorkers(
  main: string,
  workersCase: WorkersCase,
  rounds: { readonly count: number; readonly seconds: number },
): Promise<WorkersRow> {
  const sidecar = await BenchSidecar.start({
    ...workersCase,
    rate: 1_000_000,
    redisUrl: undefined,
  });
  const client: ClosedLoop = new ClientProcess(main, undefined, [CLIENT_ARGUMENT]);
  const row = { answerUs: [] as number[], connectionUs: [] as number[], held: [] as number[][] };
  const order = {
    address: { path: sidecar.socket },
    requests: [REQUEST],
    connections: CONNECTIONS,
  };
  try {
    // Between rounds some connections are still being closed.
    const idle = sidecar.socketsHeld();
    // The first round warms up.
    for (let round = 0; round <= rounds.count; round += 1) {
      const before = sidecar.processorUs();
      const halfTime = new Promise<number[]>((resolve) =>
        setTimeout(() => resolve(sidecar.socketsHeld()), rounds.seconds * 500),
      );
      const { perSecond } = await client.run({ ...order, seconds: rounds.seconds });
      const answerUs = (sidecar.processorUs() - before) / (perSecond * rounds.seconds);
      const held = (await halfTime).map((sockets, index) => sockets - (idle[index] ?? 0));
      const connectionUs = await shortConnections(sidecar);
      if (round === 0) continue;
      row.answerUs.push(answerUs);
      row.connectionUs.push(connectionUs);
      row.held.push(held);
    }
    return { ...workersCase, ...row };
  } finally {
    client.close();
    await sidecar.stop();
  }
}

async function shortConnections(sidecar: BenchSidecar): Promise<number> {
  const before = sidecar.processorUs();
  let left = SHORT_CONNECTIONS;
  const askInTurn = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await askOnce({ path: sidecar.socket }, REQUEST);
    }
  };
  await Promise.all(Array.from({ length: SHORT_AT_ONCE }, askInTurn));
  return (sidecar.processorUs() - before) / SHORT_CONNECTIONS;
}

/** What is admitted over four workers that are asked for much more. */
export async function measureAccuracy(
  main: string,
  store: AccuracyRow["store"],
  workers: number,
  seconds: number,
): Promise<AccuracyRow> {
  const folder = mkdtempSync(join(tmpdir(), "aliquot-bench-"));
  const redis = store === "redis" ? await RedisServer.start(folder) : undefined;
  const terms = { workers, spread: "in turn", rate: RATE, redisUrl: redis?.url } as const;
  const sidecar = await BenchSidecar.start(terms);
  const client: ClosedLoop = new ClientProcess(main, undefined, [CLIENT_ARGUMENT]);
  try {
    const began = performance.now();
    const { perSecond } = await client.run({
      address: { path: sidecar.socket },
      requests: [REQUEST],
      connections: CONNECTIONS,
      seconds,
    });
    const took = (performance.now() - began) / 1_000;
    const { limits } = JSON.parse(await sidecar.ops("/status")) as Status;
    const [limit] = limits;
    const admitted = limit?.decisions.allowed ?? Number.NaN;
    const asked = Math.round(perSecond * seconds);
    const bound = limit?.over_admission_bound ?? Number.NaN;
    return { store, workers, seconds: took, asked, admitted, ideal: BURST + RATE * took, bound };
  } finally {
    client.close();
    await sidecar.stop();
    await redis?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Status {
  readonly limits: readonly {
    readonly over_admission_bound: number;
    readonly decisions: { readonly allowed: number };
  }[];
}

/** What it costs to ask another process, as a table that is in one of them would be asked. */
export async function measureTable(main: string, rounds: number): Promise<TableRow> {
  const table = fork(main, [TABLE_ARGUMENT], { serialization: "advanced" });
  const askUs: number[] = [];
  try {
    for (let round = 0; round <= rounds; round += 1) {
      const before = processorUs(process.pid) + processorUs(table.pid ?? 0);
      await new Promise<void>((resolve) => {
        let answered = 0;
        table.removeAllListeners("message");
        table.on("message", () => {
          answered += 1;
          if (answered === QUESTIONS) resolve();
        });
        // All at once: what is written and read together costs least.
        for (let i = 0; i < QUESTIONS; i += 1) table.send({ limit: "api", key: `k-${i}`, cost: 1 });
      });
      const spent = processorUs(process.pid) + processorUs(table.pid ?? 0) - before;
      if (round > 0) askUs.push(spent / QUESTIONS);
    }
    return { askUs };
  } finally {
    table.kill("SIGKILL");
  }
}

/** Runs in the process that `measureTable` started: answers at once, as a table would at best. */
export function runTable(): void {
  process.on("message", () => process.send?.({ allowed: true, remaining: 41, retryAfterMs: 0 }));
}

const REQUEST = "GET /v1/check?limit=bench&key=user-1 HTTP/1.1\r\nHost: aliquot\r\n\r\n";

interface Terms extends WorkersCase {
  readonly rate: number;
  readonly redisUrl: string | undefined;
}

class BenchSidecar {
  readonly socket: string;
  readonly #folder: string;
  readonly #opsPort: number;
  readonly #child: ChildProcess;

  static async start(terms: Terms): Promise<BenchSidecar> {
    const sidecar = new BenchSidecar(terms, await freePort());
    const deadline = performance.now() + READY_WITHIN_MS;
    for (;;) {
      try {
        if ((await sidecar.ops("/readyz")).startsWith("ok")) return sidecar;
      } catch {
        // Nobody listens yet.
      }
      if (performance.now() > deadline)
        throw new Error("the sidecar of the benchmark is not ready");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  private constructor({ workers, spread, rate, redisUrl }: Terms, opsPort: number) {
    this.#folder = mkdtempSync(join(tmpdir(), "aliquot-bench-"));
    this.#opsPort = opsPort;
    this.socket = join(this.#folder, "http.sock");
    const config = join(this.#folder, "config.yaml");
    const lines = [
      "version: 1",
      "fleet: bench",
      `listen: { http: { socket: ${this.socket}, tcp: off }, grpc: { socket: off },`,
      `  ops: "127.0.0.1:${opsPort}" }`,
      `workers: ${workers}`,
      "log_level: error",
      ...(redisUrl === undefined ? [] : [`redis: { url: "${redisUrl}" }`]),
      `limits: [ { name: bench, rate: ${rate}/s, burst: ${Math.max(BURST, rate)}, mode: hybrid } ]`,
    ];
    writeFileSync(config, `${lines.join("\n")}\n`);
    const policy = spread === "in turn" ? "rr" : "none";
    const { PATH = "" } = process.env;
    const env = { PATH, NODE_CLUSTER_SCHED_POLICY: policy };
    const args = [SIDECAR, "serve", "--config", config];
    this.#child = spawn(process.execPath, args, { stdio: "ignore", env });
  }

  async ops(path: string): Promise<string> {
    return (await fetch(`http://127.0.0.1:${this.#opsPort}${path}`)).text();
  }

  /** Of all its processes. */
  processorUs(): number {
    return [this.#pid, ...this.#workers].reduce((sum, pid) => sum + processorUs(pid), 0);
  }

  /** Sockets that each worker has open; the process itself when it has none. */
  socketsHeld(): number[] {
    const workers = this.#workers;
    return (workers.length > 0 ? workers : [this.#pid]).map(socketsOf);
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once("close", resolve));
    this.#child.kill("SIGTERM");
    await ended;
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #pid(): number {
    return this.#child.pid ?? 0;
  }

  get #workers(): readonly number[] {
    const children = readFileSync(`/proc/${this.#pid}/task/${this.#pid}/children`, "latin1");
    return children.trim().split(" ").filter(Boolean).map(Number);
  }
}

function socketsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith("socket:");
    } catch {
      return false; // closed meanwhile
    }
  }).length;
}
