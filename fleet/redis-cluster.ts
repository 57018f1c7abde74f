/**
 * A Redis Cluster of three primaries and three replicas, real processes on free ports, that fails
 * over within a few seconds.
 */
import { Cluster, Redis } from "ioredis";
import { freePort } from "./free-port.ts";
import type { RedisServer, RedisStarter } from "./redis-server.ts";
import { until } from "./until.ts";

const PRIMARIES = 3;
const SLOTS = 16_384;
/** Short, and still longer than a busy machine makes a node wait. */
const NODE_TIMEOUT_MS = 1_500;
const READY_WITHIN_MS = 30_000;

export class RedisCluster {
  /** The first three begin as primaries of a third of the slots each, in this order. */
  readonly nodes: RedisServer[] = [];
  readonly #busPorts: number[] = [];
  readonly #clients = new Map<RedisServer, Redis>();
  #whole: Cluster | undefined;

  /**
   * Resolves when every node finds the cluster complete.
   *
   * @param starter - Starts each of the servers.
   * @param args - For every server.
   * @throws {Error} When one of them does not start, or they do not find each other.
   */
  static async start(starter: RedisStarter, args: readonly string[] = []): Promise<RedisCluster> {
    const cluster = new RedisCluster();
    try {
      await cluster.#begin(starter, args);
      return cluster;
    } catch (error) {
      await cluster.dispose();
      throw error;
    }
  }

  /** The `redis` section of a configuration; it names all nodes. */
  get yaml(): string {
    const urls = this.nodes.map(({ port }) => `redis://127.0.0.1:${port}`);
    return `redis:\n  cluster: [${urls.join(", ")}]`;
  }

  /** A client that finds the right node by itself. */
  get client(): Cluster {
    this.#whole ??= new Cluster(this.nodes.map(({ host, port }) => ({ host, port })));
    return this.#whole;
  }

  /** A client of one node. */
  admin(node: RedisServer): Redis {
    const known = this.#clients.get(node);
    if (known !== undefined) return known;
    const client = new Redis(node.port, node.host, { protocol: 2, enableReadyCheck: false });
    client.on("error", () => {}); // a node that is down is what this is for
    this.#clients.set(node, client);
    return client;
  }

  /** Runs a command on every node. */
  async everywhere(command: string, ...args: string[]): Promise<void> {
    for (const node of this.nodes) await this.admin(node).call(command, ...args);
  }

  async idOf(node: RedisServer): Promise<string> {
    return (await this.admin(node).call("CLUSTER", "MYID")) as string;
  }

  /** The node that serves a slot, as `asked` believes. */
  async ownerOf(slot: number, asked: RedisServer): Promise<RedisServer | undefined> {
    const ranges = (await this.admin(asked).call("CLUSTER", "SLOTS")) as SlotRange[];
    const range = ranges.find(([first, last]) => first <= slot && slot <= last);
    return this.nodes.find(({ port }) => port === range?.[2][1]);
  }

  /**
   * Moves one slot as an operator's tool does: announced on both sides, key by key, then settled.
   *
   * @param onHalfMoved - Called once when some of the keys have gone.
   */
  async migrate(
    slot: number,
    from: RedisServer,
    to: RedisServer,
    onHalfMoved: () => Promise<void> = async () => {},
  ): Promise<void> {
    const [source, target] = [this.admin(from), this.admin(to)];
    const number = String(slot);
    await target.call("CLUSTER", "SETSLOT", number, "IMPORTING", await this.idOf(from));
    await source.call("CLUSTER", "SETSLOT", number, "MIGRATING", await this.idOf(to));
    for (let moved = 0; ; moved += 1) {
      const [key] = (await source.call("CLUSTER", "GETKEYSINSLOT", number, "1")) as string[];
      if (key === undefined) break;
      await source.call("MIGRATE", to.host, String(to.port), key, "0", "5000");
      if (moved === 1) await onHalfMoved();
    }
    const id = await this.idOf(to);
    await target.call("CLUSTER", "SETSLOT", number, "NODE", id);
    for (const node of this.nodes) {
      const [role] = (await this.admin(node).call("ROLE")) as [string];
      if (node === to || role !== "master") continue;
      await this.admin(node).call("CLUSTER", "SETSLOT", number, "NODE", id);
    }
  }

  /** Makes a replica of this primary take its place; resolves when it has been told. */
  async failover(primary: RedisServer): Promise<void> {
    const id = await this.idOf(primary);
    for (const node of this.nodes) {
      const rows = (await this.admin(node).call("CLUSTER", "NODES")) as string;
      const own = rows.split("\n").find((row) => row.includes("myself"));
      if (own?.includes(id) !== true || own.startsWith(id)) continue;
      await this.admin(node).call("CLUSTER", "FAILOVER");
      return;
    }
    throw new Error(`the primary on port ${primary.port} has no replica`);
  }

  /** Closes all connections and leaves the servers running. */
  close(): void {
    this.#whole?.disconnect();
    for (const client of this.#clients.values()) client.disconnect();
  }

  async dispose(): Promise<void> {
    this.close();
    for (const node of this.nodes) await node.dispose();
  }

  async #begin(starter: RedisStarter, args: readonly string[]): Promise<void> {
    for (let i = 0; i < 2 * PRIMARIES; i += 1) {
      const busPort = await freePort();
      // The usual bus port, 10,000 above the other, may lie beyond the last port.
      const mode = ["--cluster-enabled", "yes", "--cluster-port", String(busPort)];
      const timing = ["--cluster-node-timeout", String(NODE_TIMEOUT_MS)];
      const partly = ["--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0"];
      this.nodes.push(await starter({ args: [...mode, ...timing, ...partly, ...args] }));
      this.#busPorts.push(busPort);
    }
    await this.#introduce();
    const primaries = this.nodes.slice(0, PRIMARIES);
    for (const [i, node] of primaries.entries()) {
      const first = Math.floor((SLOTS * i) / PRIMARIES);
      const last = Math.floor((SLOTS * (i + 1)) / PRIMARIES) - 1;
      const range = [String(first), String(last)];
      await this.admin(node).call("CLUSTER", "ADDSLOTSRANGE", ...range);
    }
    for (const [i, primary] of primaries.entries()) {
      const replica = this.nodes[PRIMARIES + i] as RedisServer;
      await this.admin(replica).call("CLUSTER", "REPLICATE", await this.idOf(primary));
    }
    for (const node of this.nodes) {
      await until(`node ${node.port} finds the cluster complete`, READY_WITHIN_MS, () =>
        this.#isComplete(node),
      );
    }
  }

  async #introduce(): Promise<void> {
    const [first] = this.nodes as [RedisServer];
    for (const [i, node] of this.nodes.entries()) {
      const address = [node.host, String(node.port), String(this.#busPorts[i])];
      if (node !== first) await this.admin(first).call("CLUSTER", "MEET", ...address);
    }
    for (const node of this.nodes) {
      await until(`node ${node.port} knows the others`, READY_WITHIN_MS, async () => {
        const known = (await this.admin(node).call("CLUSTER", "NODES")) as string;
        return (
          known.trim().split("\n").length === this.nodes.length && !known.includes("handshake")
        );
      });
    }
  }

  async #isComplete(node: RedisServer): Promise<boolean> {
    const info = (await this.admin(node).call("CLUSTER", "INFO")) as string;
    const ranges = (await this.admin(node).call("CLUSTER", "SLOTS")) as SlotRange[];
    const link = await this.admin(node).info("replication");
    return (
      /cluster_state:ok/.test(info) &&
      ranges.length === PRIMARIES &&
      ranges.every((range) => range.length === 4) &&
      !link.includes("master_link_status:down")
    );
  }
}

/** First and last slot, then the primary and its replicas: host, port, id. */
type SlotRange = [number, number, [string, number], ...unknown[]];
