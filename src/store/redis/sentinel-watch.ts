/**
 * Listens to the Sentinels for the news that the primary was replaced.
 *
 * Without it a pod would stay with the old primary for as long as that one takes writes, which
 * after a failover on an operator's word is ten seconds, and all that it is told meanwhile is lost.
 */
import { Redis } from "ioredis";
import { CONNECT_TIMEOUT_MS, type RedisAccess, readTls, refreshTls } from "./client.ts";

const REPLACED = "+switch-master";
const RETRY_MS = 5_000;
const KEEP_ALIVE_MS = 10_000;

export interface SentinelWatch {
  close(): void;
}

/**
 * One connection to each Sentinel that the configuration names.
 *
 * @param onReplaced - Told once for each Sentinel that says so.
 * @returns Undefined when the store is not watched by Sentinels.
 */
export function watchSentinels(
  access: RedisAccess,
  onReplaced: () => void,
): SentinelWatch | undefined {
  const { topology } = access;
  if (topology.kind !== "sentinel") return undefined;
  const watches = topology.sentinels.map((sentinel) => {
    const tls = readTls(access.tls);
    const watch: Redis = new Redis({
      ...sentinel,
      ...(tls !== undefined && { tls }),
      protocol: 2,
      connectTimeout: CONNECT_TIMEOUT_MS,
      connectionName: "aliquot",
      disableClientInfo: true,
      enableReadyCheck: false,
      maxRetriesPerRequest: null,
      keepAlive: KEEP_ALIVE_MS,
      retryStrategy: () => {
        refreshTls(watch, access);
        return RETRY_MS;
      },
    });
    // A Sentinel that is away is no trouble while another answers; the client tells when none does.
    watch.on("error", () => {});
    watch.on("message", (_channel, message: string) => {
      if (message.startsWith(`${topology.name} `)) onReplaced();
    });
    watch.subscribe(REPLACED).catch(() => {}); // ends with the connection, at the close
    return watch;
  });
  return {
    close: () => {
      for (const watch of watches) watch.disconnect();
    },
  };
}
