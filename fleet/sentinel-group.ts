/**
 * A primary with two replicas under three Sentinels, all real processes on free ports, that fails
 * over within a few seconds.
 */
import { Redis } from "ioredis";
import type { RedisServer, RedisStarter } from "./redis-server.ts";
import { until } from "./until.ts";

const REPLICAS = 2;
const SENTINELS = 3;
const QUORUM = 2;
/** Short, and still longer than a busy machine makes a server wait. */
const DOWN_AFTER_MS = 1_500;
/** The next failover waits for twice this. */
const FAILOVER_TIMEOUT_MS = 3_000;
const READY_WITHIN_MS = 30_000;

export class SentinelGroup {
  readonly name = "aliquot-primary";
  /** The first one begins as the primary. */
  readonly servers: RedisServer[] = [];
  readonly sentinels: RedisServer[] = [];
  readonly #clients = new Map<RedisServer, Redis>();

  /**
   * Resolves when every Sentinel knows the others and both replicas.
   *
   * @param starter - Starts each of the servers and the Sentinels.
   * @throws {Error} When one of them does not start, or they do not find each other.
   */
  static async start(starter: RedisStarter): Promise<SentinelGroup> {
    const group = new SentinelGroup();
    try {
      await group.#begin(starter);
      return group;
    } catch (error) {
      await group.dispose();
      throw error;
    }
  }

  /** The `redis` section of a configuration. */
  get yaml(): string {
    const urls = this.sentinels.map(({ host, port }) => `redis://${host}:${port}`);
    return `redis:\n  sentinel: { name: ${this.name}, urls: [${urls.join(", ")}] }`;
  }

  /** The server that the Sentinels hold for the primary. */
  async primary(): Promise<RedisServer> {
    const answer = await this.#sentinel().call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", this.name);
    const port = Number((answer as string[])[1]);
    const server = this.servers.find((each) => each.port === port);
    if (server === undefined) throw new Error(`the Sentinels name port ${port} as the primary`);
    return server;
  }

  /** Resolves when every other server follows the primary. */
  async untilInStep(): Promise<void> {
    const primary = await this.primary();
    for (const replica of this.servers) {
      if (replica === primary) continue;
      await until("the replicas are in step", READY_WITHIN_MS, () => this.#isReplicating(replica));
    }
  }

  /** Makes the Sentinels choose another primary; resolves when they name it. */
  async failover(): Promise<RedisServer> {
    const before = await this.primary();
    await this.#sentinel().call("SENTINEL", "FAILOVER", this.name);
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
    const known = this.#clients.get(server);
    if (known !== undefined) return known;
    const options = { protocol: 2, enableReadyCheck: false } as const;
    const client = new Redis(server.port, server.host, options);
    client.on("error", () => {}); // a server that is down is what this is for
    this.#clients.set(server, client);
    return client;
  }

  /** Closes all connections and leaves the servers running. */
  close(): void {
    for (const client of this.#clients.values()) client.disconnect();
  }

  async dispose(): Promise<void> {
    this.close();
    for (const server of [...this.sentinels, ...this.servers]) await server.dispose();
  }

  async #begin(starter: RedisStarter): Promise<void> {
    const primary = await starter({});
    this.servers.push(primary);
    const args = ["--replicaof", primary.host, String(primary.port), "--repl-diskless-sync-delay"];
    for (let i = 0; i < REPLICAS; i += 1) {
      this.servers.push(await starter({ args: [...args, "0"] }));
    }
    const sentinel = [
      `sentinel monitor ${this.name} ${primary.host} ${primary.port} ${QUORUM}`,
      `sentinel down-after-milliseconds ${this.name} ${DOWN_AFTER_MS}`,
      `sentinel failover-timeout ${this.name} ${FAILOVER_TIMEOUT_MS}`,
    ];
    for (let i = 0; i < SENTINELS; i += 1) this.sentinels.push(await starter({ sentinel }));
    for (const each of this.sentinels) {
      const what = `Sentinel ${each.port} knows its group`;
      await until(what, READY_WITHIN_MS, () => this.#knowsAll(this.client(each)));
    }
    // A replica that never had the data would be promoted all the same.
    await this.untilInStep();
  }

  async #isReplicating(server: RedisServer): Promise<boolean> {
    const state = await this.client(server).info("replication");
    return state.includes("role:slave") && state.includes("master_link_status:up");
  }

  async #knowsAll(client: Redis): Promise<boolean> {
    try {
      const peers = (await client.call("SENTINEL", "SENTINELS", this.name)) as unknown[];
      const replicas = (await client.call("SENTINEL", "REPLICAS", this.name)) as unknown[];
      return peers.length === SENTINELS - 1 && replicas.length === REPLICAS;
    } catch {
      return false; // not listening yet
    }
  }

  #sentinel(): Redis {
    const [sentinel] = this.sentinels;
    if (sentinel === undefined) throw new Error("the Sentinels have not been started");
    return this.client(sentinel);
  }
}
