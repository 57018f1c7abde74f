/**
 * Makes the ioredis client. Its defaults suit a cache and not a limiter: it queues while offline,
 * sends commands again after a reconnect and tries for seconds. Here a command is sent once or
 * fails at once, because the engine repeats a batch itself and must know when it was sent.
 */
import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import { Cluster, Redis } from "ioredis";

export interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

export type RedisTopology =
  | { readonly kind: "single"; readonly server: RedisAddress }
  | { readonly kind: "cluster"; readonly servers: readonly RedisAddress[] }
  | {
      readonly kind: "sentinel";
      readonly name: string;
      readonly sentinels: readonly RedisAddress[];
    };

/** Files are read again at each connection to a single server, so that they may rotate. */
export interface RedisTlsFiles {
  readonly caFile: string | undefined;
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
  readonly serverName: string | undefined;
}

export interface RedisAccess {
  readonly topology: RedisTopology;
  readonly database: number;
  readonly username: string | undefined;
  readonly password:
    | { readonly kind: "value"; readonly value: string }
    | { readonly kind: "file"; readonly path: string }
    | undefined;
  /** Undefined for plain TCP. */
  readonly tls: RedisTlsFiles | undefined;
}

export type RedisClient = Redis | Cluster;

/** A connection that takes longer to be made, or to say that it is ready, is given up. */
export const CONNECT_TIMEOUT_MS = 1_000;
/** A closing connection whose server does not answer is cut off after this. */
const DISCONNECT_TIMEOUT_MS = 50;
/** Redirections followed for one command while a cluster moves slots. */
const REDIRECTIONS_MAX = 4;
const SLOTS_REFRESH_MS = 2_000;

/**
 * @param retryDelayMs - Called after each connection that ended or was not made: how long to wait.
 * @throws {Error} When a password or TLS file cannot be read, naming the file.
 */
export function createClient(access: RedisAccess, retryDelayMs: () => number): RedisClient {
  const { topology } = access;
  const shared = sharedOptions(access);
  if (topology.kind === "cluster") {
    return new Cluster(
      topology.servers.map((server) => ({ ...server })),
      {
        redisOptions: { ...shared, socketTimeout: CONNECT_TIMEOUT_MS },
        enableOfflineQueue: false,
        clusterRetryStrategy: retryDelayMs,
        maxRedirections: REDIRECTIONS_MAX,
        // A command whose connection was lost may have run: it is not sent again.
        retryDelayOnFailover: 0,
        retryDelayOnClusterDown: 0,
        slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
        slotsRefreshInterval: SLOTS_REFRESH_MS,
      },
    );
  }
  const options = { ...shared, db: access.database, enableOfflineQueue: false };
  const client =
    topology.kind === "single"
      ? new Redis({ ...options, ...topology.server, retryStrategy: () => renew() })
      : new Redis({
          ...options,
          name: topology.name,
          sentinels: topology.sentinels.map((sentinel) => ({ ...sentinel })),
          sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
          sentinelRetryStrategy: retryDelayMs,
          ...(shared.tls && { enableTLSForSentinelMode: true, sentinelTLS: shared.tls }),
          retryStrategy: () => renew(),
        });
  const renew = (): number => {
    refreshSecrets(client, access);
    return retryDelayMs();
  };
  return client;
}

function sharedOptions(access: RedisAccess) {
  const password = readPassword(access);
  const tls = readTls(access.tls);
  return {
    protocol: 2 as const,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    enableReadyCheck: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    maxLoadingRetryTime: CONNECT_TIMEOUT_MS / 2,
    keepAlive: 10_000,
    noDelay: true,
    disableClientInfo: true,
    connectionName: "aliquot",
    // A demoted primary keeps its connections open and refuses every write: look for the new one.
    reconnectOnError: (error: Error) => (error.message.includes("READONLY") ? 1 : false),
    ...(access.username !== undefined && { username: access.username }),
    ...(password !== undefined && { password }),
    ...(tls !== undefined && { tls }),
  };
}

/** A file that is gone for a moment, as while a secret is swapped, leaves what was read before. */
function refreshSecrets(client: Redis, access: RedisAccess): void {
  try {
    client.options.password = readPassword(access);
    client.options.tls = readTls(access.tls);
  } catch {
    // The next attempt reads again; this one tries what is known.
  }
}

function readPassword({ password }: RedisAccess): string | undefined {
  if (password === undefined) return undefined;
  if (password.kind === "value") return password.value;
  return readSecret(password.path).replace(/\r?\n$/, "");
}

function readTls(files: RedisTlsFiles | undefined): ConnectionOptions | undefined {
  if (files === undefined) return undefined;
  return {
    ...(files.caFile !== undefined && { ca: readSecret(files.caFile) }),
    ...(files.certFile !== undefined && { cert: readSecret(files.certFile) }),
    ...(files.keyFile !== undefined && { key: readSecret(files.keyFile) }),
    ...(files.serverName !== undefined && { servername: files.serverName }),
  };
}

function readSecret(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new Error(`cannot read ${path} for the connection to Redis`, { cause });
  }
}
