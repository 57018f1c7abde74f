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

/** The name of the fleet. */
export const FLEET_NAME = "harness";

/** The limit that is measured. */
export const LIMIT_NAME = "fleet-limit";

/** The limit that refills a token a day: what is missing of it in the store was told to it. */
export const COUNTED_NAME = "counted";
const COUNTED_BURST = 100_000;

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
  readonly mode: string;
  /** The `redis` section; undefined for the embedded store. */
  readonly redis: string | undefined;
}

/** What a pod says about itself. */
export interface PodStatus {
  readonly livePods: number;
  readonly share: number;
  readonly fallbackActive: boolean;
  /** Tokens that it has admitted since it started, of the measured limit and the counted one. */
  readonly admitted: number;
  readonly counted: number;
}

export interface PodTimes {
  readonly decisions: DecisionTimes;
  /** The longest time since the last question that its event loop was kept from turning. */
  readonly loopDelayMs: number;
}

/** How the measured limit is kept. */
export interface LimitStanding {
  readonly mode: string;
  /** Most tokens beyond burst and refill while the store is there. */
  readonly bound: number;
}

export class Pod {
  readonly number: number;
  readonly socket: string;
  /** Resolves with the exit code; null when a signal ended it. */
  readonly exited: Promise<number | null>;
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
      this.#child.once("exit", (code) => {
        this.#isRunning = false;
        this.#agent.destroy();
        resolve(code);
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
  async times(): Promise<PodTimes> {
    const page = (await this.#ask("/metrics")) ?? "";
    const lag = /^nodejs_eventloop_lag_max_seconds (.+)$/m.exec(page)?.[1];
    return { decisions: decisionTimesIn(page), loopDelayMs: Number(lag ?? 0) * 1_000 };
  }

  /** Whether it has told the store everything, and the store is there; false without an answer. */
  async isSettled(): Promise<boolean> {
    const page = (await this.#ask("/metrics")) ?? "";
    const untold = [...page.matchAll(/^aliquot_unreconciled_tokens\{[^}]*\} (.+)$/gm)];
    return (
      untold.length > 0 &&
      untold.every(([, tokens]) => Number(tokens) === 0) &&
      /^aliquot_fallback_active 0$/m.test(page)
    );
  }

  /** @throws {Error} When it does not answer in time. */
  async standing(): Promise<LimitStanding> {
    const body = await this.#ask(`/v1/limits/${LIMIT_NAME}`, { socketPath: this.socket });
    if (body === undefined) throw new Error(`${this.name} does not tell its limits`);
    const told = JSON.parse(body) as { mode: string; over_admission_bound: number };
    return { mode: told.mode, bound: told.over_admission_bound };
  }

  async #isReady(): Promise<boolean> {
    return (await this.#ask("/readyz")) !== undefined;
  }

  /** The body of a page, of the ops listener unless told otherwise, when it answers 200. */
  #ask(path: string, where: object = { port: this.#opsPort }): Promise<string | undefined> {
    return new Promise((resolve) => {
      const to = { host: "127.0.0.1", path, agent: this.#agent, ...where };
      const request = get(to, (answer) => {
        let body = "";
        answer.setEncoding("utf8").on("data", (text: string) => {
          body += text;
        });
        answer.on("end", () => resolve(answer.statusCode === 200 ? body : undefined));
        answer.on("error", () => resolve(undefined));
      });
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
      readonly name: string;
      readonly share_ratio: number;
      readonly tokens: { readonly allowed: number };
    }[];
  };
  const limit = status.limits.find(({ name }) => name === LIMIT_NAME);
  const counted = status.limits.find(({ name }) => name === COUNTED_NAME);
  return {
    livePods: status.live_pods,
    fallbackActive: status.fallback_active,
    share: limit?.share_ratio ?? Number.NaN,
    admitted: limit?.tokens.allowed ?? Number.NaN,
    counted: counted?.tokens.allowed ?? Number.NaN,
  };
}

function configOf(options: PodOptions, socket: string, opsPort: number): string {
  const { redis, rate, burst, mode } = options;
  return [
    "version: 1",
    `fleet: ${FLEET_NAME}`,
    "listen:",
    `  http: { socket: ${socket}, tcp: "off" }`,
    '  grpc: { socket: "off" }',
    `  ops: 127.0.0.1:${opsPort}`,
    ...(redis === undefined ? [] : [redis]),
    `reconcile: { interval: ${options.interval} }`,
    `decision_timeout: ${options.decisionTimeout}`,
    `membership: { timeout: ${options.membershipTimeout} }`,
    `fallback: { margin: ${options.margin} }`,
    "limits:",
    `  - { name: ${LIMIT_NAME}, rate: ${rate}, burst: ${burst}, mode: ${mode} }`,
    `  - { name: ${COUNTED_NAME}, rate: 1/d, burst: ${COUNTED_BURST}, mode: ${mode} }`,
    "",
  ].join("\n");
}
