/**
 * What the pods say they admitted and what the store says was consumed. For a limit that refills a
 * token a day the two must be equal, token by token, however the road between them was broken.
 */
import type { Cluster, Redis } from "ioredis";
import { missingTokens, stateName as nameIn } from "../../fleet/stored-tokens.ts";
import { until } from "../../fleet/until.ts";
import type { Sidecar } from "../support/sidecar.ts";

const FLEET = "test";
const SETTLED_WITHIN_MS = 15_000;

/** The name under which a key's state is stored. */
export function stateName(limit: string, key: string): string {
  return nameIn(FLEET, limit, key);
}

/** Tokens missing from the stored bucket of one key. */
export function consumed(redis: Redis | Cluster, limit: string, key: string): Promise<number> {
  return missingTokens(redis, stateName(limit, key));
}

/** Tokens missing over several keys, rounded: what has refilled is far below one token. */
export async function consumedOver(
  redis: Redis | Cluster,
  limit: string,
  keys: readonly string[],
): Promise<number> {
  let total = 0;
  for (const key of keys) total += await consumed(redis, limit, key);
  return Math.round(total);
}

/** Tokens that the pods admitted, as their metrics tell. */
export async function admitted(pods: readonly Sidecar[], limit: string): Promise<number> {
  const label = `aliquot_tokens_total{limit="${limit}",outcome="allowed"}`;
  const counts = await Promise.all(pods.map((pod) => pod.metric(label)));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Resolves when no pod has anything left to tell the store and none is in the fallback. */
export async function settled(pods: readonly Sidecar[]): Promise<void> {
  for (const pod of pods) {
    await until("everything admitted was told to the store", SETTLED_WITHIN_MS, async () => {
      const untold = await pod.sum("aliquot_unreconciled_tokens");
      return untold === 0 && (await pod.metric("aliquot_fallback_active")) === 0;
    });
  }
}

/** Resolves when every pod counts that many live pods and reaches the store. */
export async function gathered(pods: readonly Sidecar[]): Promise<void> {
  for (const pod of pods) {
    await until(`every pod counts ${pods.length}`, SETTLED_WITHIN_MS, async () => {
      const up = (await pod.metric("aliquot_store_up")) === 1;
      return up && (await pod.metric("aliquot_live_pods")) === pods.length;
    });
  }
}
