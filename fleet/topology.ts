/**
 * The Redis of a run as the schedule sees it, whether it is one server, a group under Sentinels or
 * a cluster: something with a primary for the key that is being measured.
 */
import { type Cluster, Redis } from "ioredis";
import { RedisCluster } from "./redis-cluster.ts";
import { RedisServer, type RedisServerOptions, type RedisStarter } from "./redis-server.ts";
import type { Act } from "./schedule.ts";
import { SentinelGroup } from "./sentinel-group.ts";
import { until } from "./until.ts";

export const TOPOLOGIES = ["single", "sentinel", "cluster"] as const;
export type TopologyKind = (typeof TOPOLOGIES)[number];

const TAKEN_OVER_WITHIN_MS = 30_000;

interface Servers {
  /** The `redis` section of a configuration. */
  readonly yaml: string;
  /** The server that holds the key, as far as anybody says. */
  primary(): Promise<RedisServer>;
  /** Servers that take writes. */
  primaries(): Promise<readonly RedisServer[]>;
  /** Makes another one the primary, on an operator's word. */
  failover(): Promise<void>;
  /** Reads what is stored. */
  client(): Promise<Redis | Cluster>;
  /** Closes connections. */
  close(): void;
}

export class Topology {
  readonly #servers: RedisServer[];
  readonly #parts: Servers;
  /** Whom the last fault struck. */
  #struck: RedisServer | undefined;

  private constructor(servers: RedisServer[], parts: Servers) {
    this.#servers = servers;
    this.#parts = parts;
  }

  /**
   * Starts all servers and waits until they are one.
   *
   * @param stateKey - Name of the stored key whose primary the schedule strikes.
   * @param onServer - Told of each server as soon as it runs.
   */
  static async start(
    kind: TopologyKind,
    folder: string,
    stateKey: string,
    onServer: (server: RedisServer) => void,
  ): Promise<Topology> {
    const servers: RedisServer[] = [];
    const starter = async (options: RedisServerOptions): Promise<RedisServer> => {
      const server = await RedisServer.start(folder, options);
      servers.push(server);
      onServer(server);
      return server;
    };
    const parts =
      kind === "single"
        ? await singleServer(starter)
        : kind === "sentinel"
          ? sentinelServers(await SentinelGroup.start(starter))
          : clusterServers(await RedisCluster.start(starter), stateKey);
    return new Topology(servers, parts);
  }

  get yaml(): string {
    return this.#parts.yaml;
  }

  get pids(): readonly (number | undefined)[] {
    return this.#servers.map(({ pid }) => pid);
  }

  get state(): string {
    return this.#struck?.state ?? "up";
  }

  /** Calls of EVAL and EVALSHA that all servers counted, as far as they could be asked. */
  get scriptCalls(): number {
    return this.#servers.reduce((sum, { scriptCalls }) => sum + scriptCalls, 0);
  }

  async refreshCalls(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.refreshCalls()));
  }

  /** Does an act on the store; others do nothing. */
  async strike(act: Act): Promise<void> {
    switch (act.kind) {
      case "redis-stop":
        this.#struck = await this.#parts.primary();
        return this.#struck.stop();
      case "redis-hang":
        this.#struck = await this.#parts.primary();
        return this.#struck.pause();
      case "redis-start":
        for (const server of this.#servers) if (server.state !== "up") await server.start();
        this.#struck = undefined;
        return;
      case "redis-failover":
        return this.#parts.failover();
      case "redis": {
        const { command } = act;
        const primaries = await this.#parts.primaries();
        await Promise.all(primaries.map((server) => server.ask(command)));
      }
    }
  }

  client(): Promise<Redis | Cluster> {
    return this.#parts.client();
  }

  async dispose(): Promise<void> {
    this.#parts.close();
    for (const server of this.#servers) await server.dispose();
  }
}

async function singleServer(starter: RedisStarter): Promise<Servers> {
  const server = await starter({});
  let reader: Redis | undefined;
  return {
    yaml: `redis:\n  url: ${server.url}`,
    primary: async () => server,
    primaries: async () => [server],
    failover: () => Promise.reject(new Error("a single server has nobody to fail over to")),
    client: async () => {
      reader ??= quietClient(server);
      return reader;
    },
    close: () => reader?.disconnect(),
  };
}

function quietClient(server: RedisServer): Redis {
  const client = new Redis(server.port, server.host, { protocol: 2 });
  client.on("error", () => {}); // told to whoever asks
  return client;
}

function sentinelServers(group: SentinelGroup): Servers {
  return {
    yaml: group.yaml,
    primary: () => group.primary(),
    primaries: async () => [await group.primary()],
    failover: async () => {
      await group.failover();
    },
    client: async () => group.client(await group.primary()),
    close: () => group.close(),
  };
}

function clusterServers(cluster: RedisCluster, stateKey: string): Servers {
  const owner = async (): Promise<RedisServer> => {
    for (const asked of cluster.nodes) {
      if (asked.state !== "up") continue;
      const slot = Number(await cluster.admin(asked).cluster("KEYSLOT", stateKey));
      const found = await cluster.ownerOf(slot, asked);
      if (found !== undefined) return found;
    }
    throw new Error("no node of the cluster knows who holds the key");
  };
  return {
    yaml: cluster.yaml,
    primary: owner,
    primaries: async () => cluster.nodes.filter(({ state }) => state === "up"),
    failover: async () => {
      const before = await owner();
      await cluster.failover(before);
      await until("a replica has taken over", TAKEN_OVER_WITHIN_MS, async () => {
        return (await owner()) !== before;
      });
    },
    client: async () => cluster.client,
    close: () => cluster.close(),
  };
}
