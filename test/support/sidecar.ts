/**
 * Real sidecar processes for tests: the compiled `main.js serve` with a configuration of its own,
 * free ports and sockets in a temporary folder.
 *
 * A test file calls `stopSidecars` after each test; whatever is left when the test process ends is
 * killed with it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject } from "vitest";
import { until } from "../../fleet/until.ts";
import { freePort } from "./free-port.ts";

export interface SidecarOptions {
  /** The `limits` section, as YAML list items. */
  readonly limits: string;
  readonly redisUrl?: string;
  readonly podId?: string;
  readonly fleet?: string;
  /** Further top-level sections, YAML. */
  readonly extra?: string;
  /** Environment beside PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** Path of the HTTP socket; by default one in the sidecar's own folder. */
  readonly socket?: string;
  /** Path of the gRPC socket; none by default. */
  readonly grpcSocket?: string;
  /** Port of the decision API; a free one by default. */
  readonly httpPort?: number;
  /** Writes the configuration otherwise than into one file. @returns The path to start with. */
  readonly layOut?: (text: string, folder: string) => string;
  /** Resolve when the process runs, without waiting for readiness. */
  readonly unready?: boolean;
}

export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Time from sending to the last byte. */
  readonly tookMs: number;
}

export interface Verdict {
  readonly allowed: boolean;
  readonly remaining: number;
  readonly source: string;
  readonly degraded: boolean;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Generous: four sidecars may start at once beside other tests on two cores. */
const READY_WITHIN_MS = 20_000;

/** Loaded into every sidecar: a test process that was killed can end nobody any more. */
const DIES_WITH_PARENT =
  "data:text/javascript,const parent = process.ppid;" +
  "setInterval(() => { if (process.ppid !== parent) process.exit(9); }, 500).unref();";

const started = new Set<Sidecar>();
process.on("exit", () => {
  for (const sidecar of started) sidecar.destroy();
});

/** Starts a sidecar and waits until it is ready. @throws When it ends or stays unready. */
export async function startSidecar(options: SidecarOptions): Promise<Sidecar> {
  const sidecar = new Sidecar(options, options.httpPort ?? (await freePort()), await freePort());
  started.add(sidecar);
  if (options.unready !== true) await sidecar.ready();
  return sidecar;
}

/** Kills every sidecar that this test file has started and removes their folders. */
export async function stopSidecars(): Promise<void> {
  for (const sidecar of started) {
    sidecar.destroy();
    await sidecar.exited;
  }
  started.clear();
}

export class Sidecar {
  readonly options: SidecarOptions;
  readonly folder: string;
  readonly socket: string;
  /** Path of the configuration. */
  readonly config: string;
  readonly exited: Promise<Exit>;
  readonly httpPort: number;
  readonly opsPort: number;
  private readonly child: ChildProcess;
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 64 });
  private running = true;
  private printed = "";

  constructor(options: SidecarOptions, httpPort: number, opsPort: number) {
    this.options = options;
    this.httpPort = httpPort;
    this.opsPort = opsPort;
    this.folder = mkdtempSync(join(tmpdir(), "aliquot-test-"));
    this.socket = options.socket ?? join(this.folder, "http.sock");
    this.config = this.layOut();
    const { PATH = "" } = process.env; // and nothing else: ALIQUOT_* would override the file
    const args = ["--import", DIES_WITH_PARENT, mainOfBuild(), "serve", "--config", this.config];
    if (options.podId !== undefined) args.push("--pod-id", options.podId);
    this.child = spawn(process.execPath, args, {
      cwd: this.folder,
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH, ...options.env },
    });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.printed += text;
      });
    }
    // `close` and not `exit`: by then everything that the process printed has been read.
    this.exited = new Promise((resolve) => {
      this.child.once("close", (code, signal) => {
        this.running = false;
        resolve({ code, signal });
      });
    });
  }

  /** Everything printed so far, standard output and error in one. */
  get output(): string {
    return this.printed;
  }

  get alive(): boolean {
    return this.running;
  }

  get pid(): number {
    return this.child.pid ?? Number.NaN;
  }

  /** Waits for `/readyz`. @throws When the process ends first, or takes too long. */
  async ready(): Promise<void> {
    try {
      await until("the sidecar is ready", READY_WITHIN_MS, async () => {
        if (!this.running) throw new Error("the sidecar ended");
        return (await this.probe("/readyz")) === 200;
      });
    } catch (error) {
      throw new Error(`pid ${this.pid} printed: ${this.printed}`, { cause: error });
    }
  }

  /** Status of a path of the ops listener; 0 when nobody listens. */
  async probe(path: string): Promise<number> {
    try {
      return (await this.send({ port: this.opsPort, path })).status;
    } catch {
      return 0;
    }
  }

  /** Asks over loopback, on a kept-alive connection. */
  async ask(limit: string, key: string, cost = 1): Promise<Answer> {
    const body = JSON.stringify({ limit, key, cost });
    return this.send({ port: this.httpPort, path: "/v1/check", body });
  }

  /** Asks over the Unix socket. */
  async askSocket(limit: string, key: string, cost = 1): Promise<Answer> {
    const body = JSON.stringify({ limit, key, cost });
    return this.send({ socketPath: this.socket, path: "/v1/check", body });
  }

  async check(limit: string, key: string, cost = 1): Promise<Verdict> {
    const answer = await this.ask(limit, key, cost);
    if (answer.status !== 200) throw new Error(`status ${answer.status}: ${answer.body}`);
    return JSON.parse(answer.body) as Verdict;
  }

  /** Debits, or refunds when the cost is negative. @throws When it is not answered with 200. */
  async report(limit: string, key: string, cost: number): Promise<void> {
    const body = JSON.stringify({ limit, key, cost });
    const answer = await this.send({ port: this.httpPort, path: "/v1/report", body });
    if (answer.status !== 200) throw new Error(`status ${answer.status}: ${answer.body}`);
  }

  /** All samples of `/metrics`; the name with its labels as printed is the key. */
  async metrics(): Promise<ReadonlyMap<string, number>> {
    const { body } = await this.send({ port: this.opsPort, path: "/metrics" });
    const samples = new Map<string, number>();
    for (const line of body.split("\n")) {
      const space = line.lastIndexOf(" ");
      if (line.startsWith("#") || space < 0) continue;
      samples.set(line.slice(0, space), Number(line.slice(space + 1)));
    }
    return samples;
  }

  async metric(name: string): Promise<number> {
    return (await this.metrics()).get(name) ?? Number.NaN;
  }

  /** Sum over all samples of a metric whose labels contain `part`. */
  async sum(name: string, part = ""): Promise<number> {
    let total = 0;
    for (const [sample, value] of await this.metrics()) {
      if (sample.startsWith(name) && sample.includes(part)) total += value;
    }
    return total;
  }

  /** Part of all decisions over loopback TCP that took no longer, inside the sidecar. */
  async partWithin(seconds: 0.01 | 0.05): Promise<number> {
    const bucket = (le: string): string =>
      `aliquot_decision_duration_seconds_bucket{transport="http",le="${le}"}`;
    const metrics = await this.metrics();
    return (metrics.get(bucket(`${seconds}`)) ?? Number.NaN) / (metrics.get(bucket("+Inf")) ?? 0);
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Sends SIGTERM and waits for the end. */
  async terminate(): Promise<Exit> {
    this.signal("SIGTERM");
    return this.exited;
  }

  /** Sends SIGKILL and waits for the end; the folder stays, as after a crash. */
  async crash(): Promise<void> {
    this.signal("SIGKILL");
    await this.exited;
  }

  /** Kills without waiting and removes the folder. */
  destroy(): void {
    this.agent.destroy();
    if (this.running) this.child.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }

  private send(to: {
    readonly port?: number;
    readonly socketPath?: string;
    readonly path: string;
    readonly body?: string;
    readonly headers?: Readonly<Record<string, string>>;
  }): Promise<Answer> {
    const start = performance.now();
    return new Promise((resolve, reject) => {
      const outgoing = request({
        ...to,
        host: "127.0.0.1",
        method: to.body === undefined ? "GET" : "POST",
        agent: this.agent,
        headers: to.body === undefined ? to.headers : { "content-type": "application/json" },
        timeout: 5_000,
      });
      outgoing.on("response", (incoming) => {
        let body = "";
        incoming.setEncoding("utf8");
        incoming.on("data", (text: string) => {
          body += text;
        });
        incoming.on("end", () => {
          const { statusCode: status = 0, headers } = incoming;
          resolve({ status, body, headers, tookMs: performance.now() - start });
        });
        incoming.on("error", reject);
      });
      outgoing.on("timeout", () => outgoing.destroy(new Error("no answer within 5 s")));
      outgoing.on("error", reject);
      outgoing.end(to.body);
    });
  }

  /** What `/status` says. */
  async status(): Promise<unknown> {
    return JSON.parse((await this.send({ port: this.opsPort, path: "/status" })).body);
  }

  /** Sends a request to the decision API as a proxy does. */
  async forward(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.send({ port: this.httpPort, path, headers });
  }

  private layOut(): string {
    const { layOut } = this.options;
    if (layOut !== undefined) return layOut(this.yaml(), this.folder);
    const config = join(this.folder, "config.yaml");
    writeFileSync(config, this.yaml());
    return config;
  }

  /** The configuration with other limits or sections, and the same listeners. */
  yaml(changed: { readonly limits?: string; readonly extra?: string } = {}): string {
    const options = { ...this.options, ...changed };
    const lines = [
      "version: 1",
      `fleet: ${options.fleet ?? "test"}`,
      "listen:",
      `  http: { socket: ${this.socket}, tcp: 127.0.0.1:${this.httpPort} }`,
      `  grpc: { socket: ${options.grpcSocket ?? "off"} }`,
      `  ops: 127.0.0.1:${this.opsPort}`,
    ];
    if (options.redisUrl !== undefined) lines.push("redis:", `  url: ${options.redisUrl}`);
    if (options.extra !== undefined) lines.push(options.extra);
    lines.push("limits:", options.limits, "");
    return lines.join("\n");
  }
}

function mainOfBuild(): string {
  const build = inject("sidecarBuild");
  if ("trouble" in build) throw new Error(build.trouble);
  return build.main;
}
