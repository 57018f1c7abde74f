/**
 * The real scripts on a real redis-server as the simulator's store, with virtual time as an
 * argument of every call. Virtual time stands still while the server works, so that a run on Redis
 * must admit exactly what the same run on the embedded store admits.
 *
 * The server is started on a free port without persistence and is killed with this process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import type { Batch, BatchReply } from "../src/core/exchange.ts";
import type { StoreCall, StoreCallReply } from "../src/core/store-call.ts";
import type { InstantUs } from "../src/core/units.ts";
import type { HeartbeatTerms } from "../src/ports/coordinator.ts";
import type { HeartbeatReply } from "../src/store/embedded/embedded-store.ts";
import {
  createRedisCoordinator,
  type RedisCoordinator,
} from "../src/store/redis/redis-coordinator.ts";
import type { StoreBackend } from "./aliquot-store.ts";

const HOST = "127.0.0.1";
const READY_WITHIN_MS = 10_000;
const POLL_MS = 20;
/** In real time; virtual timeouts are the simulated network's. */
const COMMAND_TIMEOUT_US = 10_000_000;

/** @throws {Error} When no redis-server is on PATH or it does not start. */
export async function startRedisBackend(): Promise<StoreBackend> {
  const folder = mkdtempSync(join(tmpdir(), "aliquot-sim-"));
  const port = await freePort();
  const arguments_ = ["--port", `${port}`, "--bind", HOST, "--save", "", "--dir", folder];
  const server = spawn("redis-server", arguments_, { stdio: "ignore" });
  const failed = new Promise<never>((_, reject) => server.once("error", reject));
  const kill = (): boolean => server.kill("SIGKILL");
  process.once("exit", kill);
  const admin = new Redis({ host: HOST, port, lazyConnect: true, retryStrategy: () => POLL_MS });
  admin.on("error", () => {}); // refused until the server listens
  await Promise.race([answers(admin), failed]);
  return new RedisBackend(port, admin, async () => {
    process.off("exit", kill);
    await stop(server);
    rmSync(folder, { recursive: true, force: true });
  });
}

class RedisBackend implements StoreBackend {
  readonly lanes = 4;
  readonly #port: number;
  readonly #admin: Redis;
  readonly #stop: () => Promise<void>;
  readonly #coordinators: Map<string, Promise<RedisCoordinator>> = new Map();
  #nowUs: InstantUs = 0;

  constructor(port: number, admin: Redis, stopServer: () => Promise<void>) {
    this.#port = port;
    this.#admin = admin;
    this.#stop = stopServer;
  }

  async reconcile(nowUs: InstantUs, member: string, batch: Batch): Promise<BatchReply> {
    const coordinator = await this.#coordinator(member);
    this.#nowUs = nowUs;
    return coordinator.exchange(batch);
  }

  async call(nowUs: InstantUs, member: string, call: StoreCall): Promise<StoreCallReply> {
    const coordinator = await this.#coordinator(member);
    this.#nowUs = nowUs;
    return coordinator.call(call);
  }

  async heartbeat(
    nowUs: InstantUs,
    member: string,
    terms: HeartbeatTerms,
  ): Promise<HeartbeatReply> {
    const coordinator = await this.#coordinator(member);
    this.#nowUs = nowUs;
    const roster = await coordinator.heartbeat(terms);
    // The coordinator remembers by itself when it was answered; nobody else needs to know.
    return { ...roster, nowUs: 0, epoch: 0 };
  }

  async leave(member: string): Promise<void> {
    const coordinator = await this.#coordinator(member);
    await coordinator.leave();
  }

  /** All values as Redis serialises them; a fleet of a scenario has few keys. */
  async snapshot(): Promise<() => Promise<void>> {
    const names = await this.#admin.keys("*");
    const dumps = await Promise.all(names.map((name) => this.#admin.dumpBuffer(name)));
    return async () => {
      await this.#admin.flushall();
      for (const [i, name] of names.entries()) {
        const dump = dumps[i];
        if (dump !== null && dump !== undefined) await this.#admin.restore(name, 600_000, dump);
      }
    };
  }

  async clear(): Promise<void> {
    await this.#admin.flushall();
  }

  async close(): Promise<void> {
    const coordinators = await Promise.all(this.#coordinators.values());
    await Promise.all(coordinators.map((coordinator) => coordinator.close()));
    this.#admin.disconnect();
    await this.#stop();
  }

  #coordinator(member: string): Promise<RedisCoordinator> {
    let coordinator = this.#coordinators.get(member);
    if (coordinator === undefined) {
      coordinator = this.#connect(member);
      this.#coordinators.set(member, coordinator);
    }
    return coordinator;
  }

  #connect(member: string): Promise<RedisCoordinator> {
    const [podId = "", incarnation = ""] = member.split("/");
    return new Promise((resolve) => {
      const coordinator: RedisCoordinator = createRedisCoordinator({
        topology: { kind: "single", server: { host: HOST, port: this.#port } },
        database: 0,
        username: undefined,
        password: undefined,
        tls: undefined,
        fleet: "simulated",
        podId,
        incarnation,
        commandTimeoutUs: COMMAND_TIMEOUT_US,
        clock: { monotonicUs: () => this.#nowUs },
        random: { draw: () => 0 },
        storeTime: () => this.#nowUs,
        onConnection: (change) => {
          if (change.up) resolve(coordinator);
        },
      });
    });
  }
}

async function answers(admin: Redis): Promise<void> {
  const deadlineMs = performance.now() + READY_WITHIN_MS;
  for (;;) {
    try {
      if (admin.status === "wait") await admin.connect();
      await admin.ping();
      return;
    } catch (error) {
      if (performance.now() > deadlineMs) {
        throw new Error("redis-server does not answer; is it on PATH?", { cause: error });
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, HOST, () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

function stop(server: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (server.exitCode !== null || server.signalCode !== null) return resolve();
    server.once("exit", () => resolve());
    server.kill("SIGKILL");
  });
}
