/**
 * A primary with two replicas under three Sentinels, all real processes on free ports, that fails
 * over within a few seconds.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { freePort, type RedisServer, serverBinary, startRedis } from "./redis-server.ts";
import { until } from "./until.ts";

const REPLICAS = 2;
const SENTINELS = 3;
const QUORUM = 2;
/** Short, and still longer than a busy test machine makes a server wait. */
const DOWN_AFTER_MS = 1_500;
const FAILOVER_TIMEOUT_MS = 5_000;
const READY_WITHIN_MS = 30_000;

const processes = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of processes) child.kill("SIGKILL");
});

export class SentinelGroup {
  readonly name = "aliquot-primary";
  /** The first one begins as the primary. */
  readonly servers: RedisServer[] = [];
  readonly sentinelPorts: number[] = [];
  private readonly folder = mkdtempSync(join(tmpdir(), "aliquot-sentinel-"));
  private readonly children: ChildProcess[] = [];
  private readonly clients: Redis[] = [];
  private readonly serverClients = new Map<RedisServer, Redis>();

  /** Resolves when every Sentinel knows the others and both replicas. */
  static async start(): Promise<SentinelGroup> {
    const group = new SentinelGroup();
    try {
      await group.begin();
      return group;
    } catch (error) {
      await group.dispose();
      throw error;
    }
  }

  /** The `redis` section of a configuration. */
  get yaml(): string {
    const urls = this.sentinelPorts.map((port) => `redis://127.0.0.1:${port}`);
    return `redis:\n  sentinel: { name: ${this.name}, urls: [${urls.join(", ")}] }`;
  }

  /** The server that the Sentinels hold for the primary. */
  async primary(): Promise<RedisServer> {
    const answer = await this.sentinel().call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", this.name);
    const port = Number((answer as string[])[1]);
    const server = this.servers.find((each) => each.port === port);
    if (server === undefined) throw new Error(`the Sentinels name port ${port} as the primary`);
    return server;
  }

  /** Makes the Sentinels choose another primary; resolves when they name it. */
  async failover(): Promise<RedisServer> {
    const before = await this.primary();
    await this.sentinel().call("SENTINEL", "FAILOVER", this.name);
    return this.successorOf(before);
  }

  /** Resolves with the new primary when the Sentinels name another one than this. */
  async successorOf(before: RedisServer): Promise<RedisServer> {
    await until("the Sentinels have failed over", READY_WITHIN_MS, async () => {
      return (await this.primary()) !== before;
    });
    return this.primary();
  }

  /** A client of one server, closed with the group. */
  client(server: RedisServer): Redis {
    const known = this.serverClients.get(server);
    if (known !== undefined) return known;
    const client = this.connect(server.port);
    this.serverClients.set(server, client);
    return client;
  }

  async dispose(): Promise<void> {
    for (const client of this.clients) client.disconnect();
    for (const child of this.children) {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      if (child.exitCode === null && child.kill("SIGKILL")) await ended;
      processes.delete(child);
    }
    for (const server of this.servers) await server.dispose();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async begin(): Promise<void> {
    const primary = await startRedis();
    this.servers.push(primary);
    const args = ["--replicaof", primary.host, String(primary.port), "--repl-diskless-sync-delay"];
    for (let i = 0; i < REPLICAS; i += 1) {
      this.servers.push(await startRedis({ args: [...args, "0"] }));
    }
    for (let i = 0; i < SENTINELS; i += 1) await this.spawnSentinel(i, primary.port);
    for (const port of this.sentinelPorts) {
      const client = this.connect(port);
      await until(`Sentinel ${port} knows its group`, READY_WITHIN_MS, () => this.knowsAll(client));
    }
    for (const replica of this.servers.slice(1)) {
      // A replica that never had the data would be promoted all the same.
      await until("the replicas are in step", READY_WITHIN_MS, () => this.isReplicating(replica));
    }
  }

  private async isReplicating(server: RedisServer): Promise<boolean> {
    const state = await this.client(server).info("replication");
    return state.includes("role:slave") && state.includes("master_link_status:up");
  }

  private async spawnSentinel(index: number, primaryPort: number): Promise<void> {
    const port = await freePort();
    const file = join(this.folder, `sentinel-${index}.conf`);
    const lines = [
      `port ${port}`,
      "bind 127.0.0.1",
      `dir ${this.folder}`,
      `sentinel monitor ${this.name} 127.0.0.1 ${primaryPort} ${QUORUM}`,
      `sentinel down-after-milliseconds ${this.name} ${DOWN_AFTER_MS}`,
      `sentinel failover-timeout ${this.name} ${FAILOVER_TIMEOUT_MS}`,
      "",
    ];
    writeFileSync(file, lines.join("\n"));
    const child = spawn(serverBinary(), [file, "--sentinel"], { stdio: "ignore" });
    processes.add(child);
    this.children.push(child);
    this.sentinelPorts.push(port);
  }

  private async knowsAll(client: Redis): Promise<boolean> {
    try {
      const peers = (await client.call("SENTINEL", "SENTINELS", this.name)) as unknown[];
      const replicas = (await client.call("SENTINEL", "REPLICAS", this.name)) as unknown[];
      return peers.length === SENTINELS - 1 && replicas.length === REPLICAS;
    } catch {
      return false; // not listening yet
    }
  }

  private sentinel(): Redis {
    const client = this.clients[0];
    if (client === undefined) throw new Error("the Sentinels have not been started");
    return client;
  }

  private connect(port: number): Redis {
    const client = new Redis(port, "127.0.0.1", { protocol: 2, enableReadyCheck: false });
    client.on("error", () => {}); // a server that is down is what these tests are about
    this.clients.push(client);
    return client;
  }
}
