/**
 * What a server tells of itself after a connect.
 *
 * Its run tells one server process from another that takes its place: a replica that takes over
 * holds the same epochs and may lack the last writes, so strict limits must know of it before they
 * admit. Its eviction policy is for people to read.
 */
import { Cluster } from "ioredis";
import type { RedisClient } from "./client.ts";

/**
 * Tells the scripts to look up the run id themselves: which node will run one is not known here.
 */
const ASK_THE_NODE = -1;
/** Digits of the run id that are used: 48 bits, a whole number in a double. */
const DIGITS = 12;
const NO_EVICTION = "noeviction";

export interface ServerWord {
  /** Number of the server process: below 0 on a cluster, 0 when the server does not say. */
  readonly run: number;
  /** Its `maxmemory-policy` when it drops keys for want of memory; ours must stay. */
  readonly eviction: string | undefined;
}

/** Asks a single server, and for its run only: of a cluster each node has a policy of its own. */
export async function askServer(client: RedisClient): Promise<ServerWord> {
  if (client instanceof Cluster) return { run: ASK_THE_NODE, eviction: undefined };
  const info = await infoOf(client);
  const [, digits = "0"] = /^run_id:([0-9a-f]+)/m.exec(info) ?? [];
  return { run: Number.parseInt(digits.slice(0, DIGITS), 16), eviction: evictionIn(info) };
}

/** The policies by which primaries of a cluster evict. */
export async function evictionsOf(cluster: Cluster): Promise<ReadonlySet<string>> {
  const policies = new Set<string>();
  for (const info of await Promise.all(cluster.nodes("master").map(infoOf))) {
    const policy = evictionIn(info);
    if (policy !== undefined) policies.add(policy);
  }
  return policies;
}

/** One command for all that is asked; empty when the server refuses. */
async function infoOf(server: { info(): Promise<string> }): Promise<string> {
  try {
    return await server.info();
  } catch {
    return "";
  }
}

/** Undefined for a server that keeps all it was given, or has no maximum, or does not say. */
function evictionIn(info: string): string | undefined {
  const policy = /^maxmemory_policy:([a-z-]+)/m.exec(info)?.[1];
  return policy !== NO_EVICTION && /^maxmemory:0*[1-9]/m.test(info) ? policy : undefined;
}
