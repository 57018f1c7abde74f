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

/** Files are read again before each connection, so that they may be replaced. */
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
 * A demoted or cut-off primary keeps its connections open and refuses every write: look for the new
 * one.
 */
export const NOT_PRIMARY: RegExp = /READONLY|MASTERDOWN|NOREPLICAS/;

export interface Retrying {
  /** Called after each connection that ended or was not made: how long to wait. */
  readonly delayMs: () => number;
  /** Nobody wants the connection any more. */
  readonly isClosed: () => boolean;
}

/** @throws {Error} When a password or TLS file cannot be read, naming the file. */
export function createClient(access: RedisAccess, retrying: Retrying): RedisClient {
  const { topology } = access;
  const shared = sharedOptions(access);
  if (topology.kind === "cluster") {
    const cluster = new Cluster(
      topology.servers.map((server) => ({ ...server })),
      {
        redisOptions: { ...shared, socketTimeout: CONNECT_TIMEOUT_MS },
        enableOfflineQueue: false,
        clusterRetryStrategy: retrying.delayMs,
        maxRedirections: REDIRECTIONS_MAX,
        // A command whose connection was lost may have run: it is not sent again.
        retryDelayOnFailover: 0,
        retryDelayOnClusterDown: 0,
        slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
        slotsRefreshInterval: SLOTS_REFRESH_MS,
      },
    );
    // Told before the new node connects. A node in use is copied to ask for the slots, so it must
    // know a new password although its own connection does not need it.
    cluster.on("+node", (node: Redis) => refreshSecrets(node, access));
    cluster.on("node error", () => {
      for (const node of cluster.nodes()) refreshSecrets(node, access);
    });
    return cluster;
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
          sentinelRetryStrategy: () => renew(),
          ...(shared.tls && { enableTLSForSentinelMode: true, sentinelTLS: shared.tls }),
          retryStrategy: () => renew(),
        });
  const renew = (): number => {
    refreshSecrets(client, access);
    return retrying.delayMs();
  };
  // The client gives up for good when a connection cannot even be begun, as with a certificate and
  // a key that do not belong together because they are just being replaced.
  client.on("end", () => {
    if (retrying.isClosed()) return;
    const again = (): void => {
      if (!retrying.isClosed()) client.connect().catch(() => {}); // told by the event "error"
    };
    setTimeout(again, renew()).unref();
  });
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
    reconnectOnError: (error: Error) => (NOT_PRIMARY.test(error.message) ? 1 : false),
    ...(access.username !== undefined && { username: access.username }),
    ...(password !== undefined && { password }),
    ...(tls !== undefined && { tls }),
  };
}

/** A file that is gone for a moment, as while a secret is swapped, leaves what was read before. */
function refreshSecrets(client: Redis, access: RedisAccess): void {
  try {
    client.options.password = readPassword(access);
  } catch {
    // The next attempt reads again; this one tries what is known.
  }
  refreshTls(client, access);
}

/** Like `refreshSecrets`, for a connection that has a password of its own or none. */
export function refreshTls(client: Redis, access: RedisAccess): void {
  try {
    client.options.tls = readTls(access.tls);
    if (access.topology.kind === "sentinel") client.options.sentinelTLS = client.options.tls;
  } catch {
    // As above.
  }
}

function readPassword({ password }: RedisAccess): string | undefined {
  if (password === undefined) return undefined;
  if (password.kind === "value") return password.value;
  return readSecret(password.path).replace(/\r?\n$/, "");
}

export function readTls(files: RedisTlsFiles | undefined): ConnectionOptions | undefined {
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
