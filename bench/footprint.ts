/**
 * What a sidecar costs before anybody asks it anything: the time from its start to the first
 * answered check, and its memory while it is idle, next to a bare `node:http` server in the same
 * run. The program is the image's: bundled, with the flags of its entry point and its environment.
 * The node that runs the benchmark runs them all.
 *
 * A start is the time of one process on a machine that may be busy, so its processor time is told
 * as well. Memory is what the kernel counts: resident in all, and the part that is the process's
 * own and not a page of the `node` binary, which all sidecars of a node share.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../fleet/free-port.ts";
import { RedisServer } from "../fleet/redis-server.ts";
import { processorUs } from "./processor-time.ts";
import { type Spread, spreadOf } from "./rounds.ts";

export type FootprintName =
  | "bare node:http"
  | "HTTP only"
  | "all listeners"
  | "all listeners, Redis"
  | "all listeners, not bundled";

export interface FootprintRow {
  readonly name: FootprintName;
  /** From the start of the process to the first answered check, in ms. */
  readonly startMs: Spread;
  /** Processor time until then, in ms. */
  readonly processorMs: Spread;
  /** Resident while idle, in MB of 2^20 bytes. */
  readonly residentMb: Spread;
  /** Of that, memory that is in no file. */
  readonly ownMb: Spread;
}

interface Subject {
  readonly name: FootprintName;
  readonly args: readonly string[];
  readonly socket: string;
}

interface Sample {
  readonly startMs: number;
  readonly processorMs: number;
  readonly residentMb: number;
  readonly ownMb: number;
}

/** Fewer say little about a start. */
const ROUNDS_LEAST = 10;
/** Long enough for whatever a start leaves to be done. */
const IDLE_MS = 1_500;
const ANSWER_WITHIN_MS = 30_000;
const ASK_AGAIN_MS = 2;
const REQUEST =
  "GET /v1/check?limit=api&key=k HTTP/1.1\r\nhost: sidecar\r\nconnection: close\r\n\r\n";
const BARE =
  "require('node:http').createServer((_, answer) => answer.end('{}')).listen(process.argv[1])";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const UNBUNDLED = fileURLToPath(new URL("../src/main.js", import.meta.url));

/** Flags of node in the image. */
export function imageFlags(): readonly string[] {
  const line = /^ENTRYPOINT (\[.*\])$/m.exec(dockerfile());
  const words = JSON.parse(line?.[1] ?? "[]") as string[];
  return words.filter((word) => word.startsWith("--"));
}

/** The environment that the image gives. */
export function imageEnvironment(): Readonly<Record<string, string>> {
  const block = /^ENV ((?:.*\\\n)*.*)$/m.exec(dockerfile())?.[1] ?? "";
  return Object.fromEntries(
    [...block.matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [name, value]),
  );
}

function dockerfile(): string {
  return readFileSync(join(ROOT, "Dockerfile"), "utf8");
}

/** Measures all rows in alternating rounds. @param rounds - At least ten are made. */
export async function measureFootprint(rounds: number): Promise<FootprintRow[]> {
  const folder = mkdtempSync(join(tmpdir(), "aliquot-footprint-"));
  const started = new Set<ChildProcess>();
  const redis = await RedisServer.start(folder);
  const killAll = (): void => {
    for (const child of started) child.kill("SIGKILL");
    if (redis.pid !== undefined) process.kill(redis.pid, "SIGKILL");
  };
  process.once("exit", killAll);
  try {
    const subjects = await subjectsIn(folder, redis.url);
    const samples = new Map(subjects.map(({ name }) => [name, [] as Sample[]]));
    for (let round = 0; round < Math.max(rounds, ROUNDS_LEAST); round += 1) {
      for (const subject of subjects) {
        samples.get(subject.name)?.push(await sampleOf(subject, started));
      }
    }
    return subjects.map(({ name }) => rowOf(name, samples.get(name) ?? []));
  } finally {
    for (const child of started) child.kill("SIGKILL");
    await redis.stop();
    process.off("exit", killAll);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param rows - All of the run; the bare server's is what the others are measured against. */
export function footprintLine(row: FootprintRow, rows: readonly FootprintRow[]): string {
  const bare = rows.find(({ name }) => name === "bare node:http") ?? row;
  const { name, startMs, processorMs, residentMb, ownMb } = row;
  const spread = ({ median, min, max }: Spread): string =>
    `${median.toFixed(0)} (${min.toFixed(0)} to ${max.toFixed(0)})`;
  const ratio = (residentMb.median / bare.residentMb.median).toFixed(2);
  const start = `first answer ${spread(startMs)} ms, processor ${spread(processorMs)} ms`;
  return (
    `  ${name.padEnd(27)} ${start}; idle ${residentMb.median.toFixed(1)} MB (${ratio} of bare), ` +
    `own ${ownMb.median.toFixed(1)} MB`
  );
}

async function subjectsIn(folder: string, redisUrl: string): Promise<readonly Subject[]> {
  execFileSync(process.execPath, [join(ROOT, "scripts/bundle.mjs"), join(folder, "image")]);
  const bundled = join(folder, "image/dist/src/main.js");
  const flags = imageFlags();
  const sidecar = async (
    name: FootprintName,
    main: string,
    options: { readonly only?: boolean; readonly redis?: boolean },
  ): Promise<Subject> => {
    const socket = join(folder, `${name.replace(/\W+/g, "-")}.sock`);
    const config = `${socket}.yaml`;
    const [http, ops] = [await freePort(), await freePort()];
    const isOnly = options.only === true;
    const lines = [
      "version: 1",
      "fleet: bench",
      "listen:",
      `  http: { socket: ${socket}, tcp: ${isOnly ? "off" : `127.0.0.1:${http}`} }`,
      `  grpc: { socket: ${isOnly ? "off" : `${socket}.grpc`} }`,
      `  ops: 127.0.0.1:${ops}`,
      "limits: [{ name: api, rate: 5/s, burst: 20 }]",
      ...(options.redis === true ? [`redis: { url: "${redisUrl}" }`] : []),
    ];
    writeFileSync(config, `${lines.join("\n")}\n`);
    return { name, socket, args: [...flags, main, "serve", "--config", config] };
  };
  const bareSocket = join(folder, "bare.sock");
  return [
    { name: "bare node:http", socket: bareSocket, args: ["-e", BARE, bareSocket] },
    await sidecar("HTTP only", bundled, { only: true }),
    await sidecar("all listeners", bundled, {}),
    await sidecar("all listeners, Redis", bundled, { redis: true }),
    await sidecar("all listeners, not bundled", UNBUNDLED, {}),
  ];
}

async function sampleOf({ args, socket }: Subject, started: Set<ChildProcess>): Promise<Sample> {
  rmSync(socket, { force: true });
  const startedAt = performance.now();
  const child = spawn(process.execPath, args, {
    env: imageEnvironment(),
    stdio: ["ignore", "ignore", "inherit"],
  });
  started.add(child);
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const pid = child.pid ?? Number.NaN;
  await answered(socket, child);
  const startMs = performance.now() - startedAt;
  const processorMs = processorUs(pid) / 1_000;
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const sample = { startMs, processorMs, ...memoryOf(pid) };
  child.kill("SIGTERM");
  await ended;
  started.delete(child);
  return sample;
}

/** Asks until there is an answer. @throws {Error} When the process ends, or takes too long. */
async function answered(socket: string, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + ANSWER_WITHIN_MS;
  while (!(await askOnce(socket))) {
    if (child.exitCode !== null) throw new Error(`a sidecar ended with ${child.exitCode}`);
    if (performance.now() > deadline) throw new Error(`no answer in ${ANSWER_WITHIN_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
  }
}

function askOnce(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => socket.write(REQUEST));
    socket.once("data", (bytes) => {
      socket.destroy();
      resolve(bytes.toString("latin1").startsWith("HTTP/1.1 200"));
    });
    socket.once("error", () => resolve(false));
    socket.once("close", () => resolve(false));
  });
}

function memoryOf(pid: number): { readonly residentMb: number; readonly ownMb: number } {
  const status = readFileSync(`/proc/${pid}/status`, "latin1");
  const mb = (field: string): number =>
    Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) / 1_024;
  return { residentMb: mb("VmRSS"), ownMb: mb("RssAnon") };
}

function rowOf(name: FootprintName, samples: readonly Sample[]): FootprintRow {
  return {
    name,
    startMs: spreadOf(samples.map(({ startMs }) => startMs)),
    processorMs: spreadOf(samples.map(({ processorMs }) => processorMs)),
    residentMb: spreadOf(samples.map(({ residentMb }) => residentMb)),
    ownMb: spreadOf(samples.map(({ ownMb }) => ownMb)),
  };
}
