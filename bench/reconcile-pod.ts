/** One sidecar of the reconcile benchmark, and the checks that are asked of it. */
import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { Agent, type RequestOptions, request } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../fleet/free-port.ts";
import { until } from "../fleet/until.ts";

/** Checks of one request. */
export const BATCH_CHECKS = 100;

const SIDECAR = fileURLToPath(new URL("../src/main.js", import.meta.url));
const READY_WITHIN_MS = 20_000;
/** Requests at once while every key is asked for. */
const CONNECTIONS = 4;
/** Between two firings of the timer by which Node measures the delay of its event loop. */
const LOOP_RESOLUTION_MS = 10;

export interface PodFigures {
  /** Since the last question, ms. */
  readonly loopP99: number;
  readonly loopMax: number;
  /** Since the start. */
  readonly keys: number;
  readonly batches: number;
}

export class ReconcilePod {
  readonly #child: ChildProcess;
  readonly #socket: string;
  readonly #opsPort: number;
  readonly #bodies: readonly string[];
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 16 });

  private constructor(child: ChildProcess, socket: string, opsPort: number, keys: number) {
    this.#child = child;
    this.#socket = socket;
    this.#opsPort = opsPort;
    this.#bodies = Array.from({ length: keys / BATCH_CHECKS }, (_, at) => bodyOf(at));
  }

  /** Starts a pod and waits until it is ready. @param keys - A multiple of `BATCH_CHECKS`. */
  static async start(
    folder: string,
    name: string,
    redisUrl: string,
    keys: number,
  ): Promise<ReconcilePod> {
    const [socket, config] = [join(folder, `${name}.sock`), join(folder, `${name}.yaml`)];
    const opsPort = await freePort();
    writeFileSync(config, configOf(socket, opsPort, redisUrl));
    const { PATH = "" } = process.env;
    const args = [SIDECAR, "serve", "--config", config, "--pod-id", name];
    const child = spawn(process.execPath, args, { stdio: "ignore", env: { PATH } });
    const pod = new ReconcilePod(child, socket, opsPort, keys);
    try {
      await until(`${name} is ready`, READY_WITHIN_MS, () => pod.#isReady());
    } catch (error) {
      pod.kill();
      throw error;
    }
    return pod;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  kill(): void {
    this.#agent.destroy();
    this.#child.kill("SIGKILL");
  }

  /** Resolves when it counts that many pods. */
  untilCounted(pods: number): Promise<void> {
    return until(`${pods} pods are counted`, READY_WITHIN_MS, async () => {
      return sampleIn(await this.#metrics(), "aliquot_live_pods") === pods;
    });
  }

  /** Asks for every key once, as fast as the answers come. */
  async askAll(): Promise<void> {
    const bodies = this.#bodies.values();
    const askRest = async (): Promise<void> => {
      for (const body of bodies) await this.#check(body);
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, askRest));
  }

  /** Asks for the keys in turn, at a steady pace. @param perSecond - Requests. */
  async askSteadily(perSecond: number, seconds: number): Promise<void> {
    const startMs = performance.now();
    const open: Promise<void>[] = [];
    for (let sent = 0; sent < perSecond * seconds; sent += 1) {
      const dueMs = startMs + (sent / perSecond) * 1_000;
      const waitMs = dueMs - performance.now();
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
      open.push(this.#check(this.#bodies[sent % this.#bodies.length] as string));
    }
    await Promise.all(open);
  }

  async figures(): Promise<PodFigures> {
    const page = await this.#metrics();
    const delayMs = (sample: string): number =>
      Math.max(0, sampleIn(page, sample) * 1_000 - LOOP_RESOLUTION_MS);
    return {
      loopP99: delayMs("nodejs_eventloop_lag_p99_seconds"),
      loopMax: delayMs("nodejs_eventloop_lag_max_seconds"),
      keys: sampleIn(page, "aliquot_reconcile_keys_total"),
      batches: sampleIn(page, "aliquot_reconcile_duration_seconds_count"),
    };
  }

  async #isReady(): Promise<boolean> {
    if (this.#child.exitCode !== null) throw new Error("a sidecar of the benchmark ended");
    const status = await this.#send({ port: this.#opsPort, path: "/readyz" }).catch(() => "");
    return status !== "";
  }

  #metrics(): Promise<string> {
    return this.#send({ port: this.#opsPort, path: "/metrics" });
  }

  async #check(body: string): Promise<void> {
    const headers = { "content-type": "application/json" };
    const to = { socketPath: this.#socket, path: "/v1/check/batch", method: "POST", headers };
    await this.#send(to, body);
  }

  /** @throws {Error} Unless the answer is 200. */
  #send(to: RequestOptions, body?: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const outgoing = request({ host: "127.0.0.1", agent: this.#agent, ...to }, (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        answer.on("error", reject);
        answer.on("end", () => {
          if (answer.statusCode === 200) resolve(text);
          else reject(new Error(`${to.path} answered ${answer.statusCode}: ${text}`));
        });
      });
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  }
}

function bodyOf(at: number): string {
  const requests = Array.from({ length: BATCH_CHECKS }, (_, i) => {
    return { limit: "bench", key: `user-${at * BATCH_CHECKS + i}`, cost: 1 };
  });
  return JSON.stringify({ requests });
}

function sampleIn(page: string, name: string): number {
  return Number(new RegExp(`^${name} (.+)$`, "m").exec(page)?.[1]);
}

function configOf(socket: string, opsPort: number, redisUrl: string): string {
  return [
    "version: 1",
    "fleet: bench",
    "listen:",
    `  http: { socket: ${socket}, tcp: "off" }`,
    '  grpc: { socket: "off" }',
    `  ops: 127.0.0.1:${opsPort}`,
    "redis:",
    `  url: ${redisUrl}`,
    "log_level: error",
    "limits:",
    "  - { name: bench, rate: 100/s, burst: 100, mode: hybrid }",
    "",
  ].join("\n");
}
