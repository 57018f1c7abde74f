/**
 * Tells one server process from another that takes its place. A replica that takes over holds the
 * same epochs and may lack the last writes, so strict limits must know of it before they admit.
 */
import { Cluster } from "ioredis";
import type { RedisClient } from "./client.ts";

/**
 * Tells the scripts to look up the run id themselves: which node will run one is not known here.
 */
const ASK_THE_NODE = -1;
/** Digits of the run id that are used: 48 bits, a whole number in a double. */
const DIGITS = 12;

/** The number of the server process: below 0 on a cluster, 0 when the server does not say. */
export async function serverRunOf(client: RedisClient): Promise<number> {
  if (client instanceof Cluster) return ASK_THE_NODE;
  try {
    const [, digits = "0"] = /^run_id:([0-9a-f]+)/m.exec(await client.info("server")) ?? [];
    return Number.parseInt(digits.slice(0, DIGITS), 16);
  } catch {
    return 0;
  }
}
