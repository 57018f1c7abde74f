/** One sidecar process of a run: the compiled `main.js serve` with a configuration of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { Agent, get } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type DecisionTimes, decisionTimesIn } from "./decision-times.ts";
import { freePort } from "./free-port.ts";

const MAIN = fileURLToPath(new URL("../src/main.js", import.meta.url));
const READY_WITHIN_MS = 20_000;
const POLL_MS = 20;
const STATUS_WITHIN_MS = 500;
const OUTPUT_MAX = 20_000;

/** The one limit of a run. */
export const LIMIT_NAME = "fleet-limit";

export interface PodOptions {
  /** From 1. */
  readonly number: number;
  /** Where its files go. */
  readonly folder: string;
  readonly rate: string;
  readonly burst: number;
  readonly interval: string;
  readonly decisionTimeout: string;
  readonly membershipTimeout: string;
  readonly margin: number;
  /** Undefined for the embedded store. */
  readonly redisUrl: string | undefined;
}

/** What a pod says about itself. */
export interface PodStatus {
  readonly livePods: number;
  readonly share: number;
  readonly fallbackActive: boolean;
  /** Tokens that it has admitted since it started. */
  readonly admitted: number;
}

export class Pod {
  readonly number: number;
  readonly socket: string;
  readonly exited: Promise<void>;
  #isRunning = true;
  #output = "";
  readonly #child: ChildProcess;
  readonly #opsPort: number;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 2 });

  private constructor(options: PodOptions, opsPort: number) {
    this.number = options.number;
    this.#opsPort = opsPort;
    this.socket = join(options.folder, `${this.name}.sock`);
    const config = join(options.folder, `${this.name}.yaml`);
    writeFileSync(config, configOf(options, this.socket, opsPort));
    const { PATH = "" } = process.env;
    // No ALIQUOT_* variable of the caller, and no group of the caller: Ctrl-C is for the harness.
    this.#child = spawn(
      process.execPath,
      [MAIN, "serve", "--config", config, "--pod-id", this.name],
      {
        cwd: options.folder,
        stdio: ["ignore", "pipe", "pipe"],
        env: { PATH },
        detached: true,
      },
    );
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("data", (text: Buffer) => {
        this.#output = (this.#output + text.toString()).slice(-OUTPUT_MAX);
      });
    }
    this.exited = new Promise((resolve) => {
      this.#child.once("exit", () => {
        this.#isRunning = false;
        this.#agent.destroy();
        resolve();
      });
    });
  }

  /** Starts a pod and waits until it is ready. @throws {Error} With its last words. */
  static async start(options: PodOptions, onSpawn: (pod: Pod) => void): Promise<Pod> {
    const pod = new Pod(options, await freePort());
    onSpawn(pod);
    const deadline = performance.now() + READY_WITHIN_MS;
    while (!(await pod.#isReady())) {
      if (!pod.isRunning || performance.now() > deadline) {
        pod.signal("SIGKILL");
        throw new Error(`${pod.name} did not become ready:\n${pod.output}`);
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    return pod;
  }

  get name(): string {
    return `pod-${this.number}`;
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** The end of what it printed. */
  get output(): string {
    return this.#output;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** @returns Undefined when it does not answer in time. */
  async status(): Promise<PodStatus | undefined> {
    const body = await this.#ask("/status");
    return body === undefined ? undefined : statusIn(body);
  }

  /** @returns None when it does not answer in time. */
  async decisionTimes(): Promise<DecisionTimes> {
    return decisionTimesIn((await this.#ask("/metrics")) ?? "");
  }

  async #isReady(): Promise<boolean> {
    return (await this.#ask("/readyz")) !== undefined;
  }

  /** The body of a page of the ops listener, when it answers 200. */
  #ask(path: string): Promise<string | undefined> {
    return new Promise((resolve) => {
      const request = get(
        { host: "127.0.0.1", port: this.#opsPort, path, agent: this.#agent },
        (answer) => {
          let body = "";
          answer.setEncoding("utf8").on("data", (text: string) => {
            body += text;
          });
          answer.on("end", () => resolve(answer.statusCode === 200 ? body : undefined));
          answer.on("error", () => resolve(undefined));
        },
      );
      request.setTimeout(STATUS_WITHIN_MS, () => request.destroy());
      request.on("error", () => resolve(undefined));
      request.on("close", () => resolve(undefined));
    });
  }
}

function statusIn(body: string): PodStatus {
  const status = JSON.parse(body) as {
    readonly live_pods: number;
    readonly fallback_active: boolean;
    readonly limits: readonly {
      readonly share_ratio: number;
      readonly tokens: { readonly allowed: number };
    }[];
  };
  return {
    livePods: status.live_pods,
    fallbackActive: status.fallback_active,
    share: status.limits[0]?.share_ratio ?? Number.NaN,
    admitted: status.limits[0]?.tokens.allowed ?? Number.NaN,
  };
}

function configOf(options: PodOptions, socket: string, opsPort: number): string {
  const { redisUrl } = options;
  return [
    "version: 1",
    "fleet: harness",
    "listen:",
    `  http: { socket: ${socket}, tcp: "off" }`,
    '  grpc: { socket: "off" }',
    `  ops: 127.0.0.1:${opsPort}`,
    ...(redisUrl === undefined ? [] : ["redis:", `  url: ${redisUrl}`]),
    `reconcile: { interval: ${options.interval} }`,
    `decision_timeout: ${options.decisionTimeout}`,
    `membership: { timeout: ${options.membershipTimeout} }`,
    `fallback: { margin: ${options.margin} }`,
    "limits:",
    `  - { name: ${LIMIT_NAME}, rate: ${options.rate}, burst: ${options.burst} }`,
    "",
  ].join("\n");
}
