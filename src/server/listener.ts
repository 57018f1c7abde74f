/**
 * HTTP listeners on loopback TCP and on Unix sockets.
 *
 * A listener that stops answers everything it has read, with `Connection: close`, so that pooled
 * clients take their connections back instead of losing a request on them.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Server as NetServer, Socket } from "node:net";
import { allRead } from "./all-read.ts";
import { takeClientError } from "./client-error.ts";
import { directResponses, type ResponseTerms } from "./direct-response.ts";
import { IdleConnections } from "./idle-connections.ts";
import { errorCode, ListenError } from "./listen-error.ts";
import { claimUnixSocket, type SocketClaim } from "./unix-socket.ts";
import { WholeRequest } from "./whole-request.ts";

export type ListenAddress =
  | { readonly kind: "tcp"; readonly host: string; readonly port: number }
  | {
      readonly kind: "unix";
      readonly path: string;
      readonly mode: number;
      /**
       * The name under which another process binds the socket for this one; that process claims
       * the path. Undefined: this one does.
       */
      readonly boundAs?: string | undefined;
    };

/** What bounds a listener. All times in ms. */
export interface ListenerBounds {
  /** A request's head must be complete this long after its first byte. */
  readonly headersTimeoutMs: number;
  /** A request must be complete this long after its first byte. */
  readonly requestTimeoutMs: number;
  /**
   * An idle connection, also one over which nothing has come yet, is closed after this. Longer than
   * common clients keep theirs (nginx 60 s, Go 90 s), so that it is the client that closes and no
   * request meets a closing connection.
   */
  readonly keepAliveTimeoutMs: number;
  /** More connections are closed as soon as they are accepted. */
  readonly connectionsMax: number;
}

export const DEFAULT_BOUNDS: ListenerBounds = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 10_000,
  keepAliveTimeoutMs: 120_000,
  connectionsMax: 4_096,
};

/** Connections that wait to be accepted; a deployment's pods connect at once. */
const BACKLOG_MAX = 1_024;

/** How often Node looks for late requests: each ... ms, and so often within their timeout. */
const LATE_CHECK_MS = 2_000;
const LATE_CHECKS_PER_TIMEOUT = 4;

export interface HttpListener {
  /** `host:port` with the port that was bound, or the path of the socket. */
  readonly address: string;
  /** The port that was bound; undefined for a Unix socket. */
  readonly port: number | undefined;
  /**
   * Stops accepting, removes the socket if it is still ours, answers what is in flight, and closes
   * every connection; what is not done after `timeoutMs` is cut. Safe to call twice.
   */
  stop(timeoutMs: number): Promise<void>;
}

/**
 * Opens a listener.
 *
 * @param onAcceptError - Told when a connection could not be accepted (file descriptors ran out).
 * @throws {ListenError} When the address cannot be bound; the message names it.
 */
export async function listenHttp(
  handler: (req: IncomingMessage, res: ServerResponse) => void,
  address: ListenAddress,
  bounds: Partial<ListenerBounds> = {},
  onAcceptError: (error: Error) => void = () => {},
): Promise<HttpListener> {
  const allBounds = { ...DEFAULT_BOUNDS, ...bounds };
  const { keepAliveTimeoutMs } = allBounds;
  const terms: ResponseTerms = { isDraining: false, keepAliveTimeoutMs };
  const connections = new IdleConnections(keepAliveTimeoutMs);
  const server = createBoundedServer(handler, terms, allBounds);
  server.on("connection", (socket: Socket) => connections.add(socket));
  server.on("clientError", takeClientError);

  server.once("close", () => connections.stop());
  const claim = await bindServer(server, address);
  server.on("error", onAcceptError);

  const port = boundPort(server);
  let stopping: Promise<void> | undefined;
  return {
    address: addressText(address, port),
    port,
    stop: (timeoutMs) => {
      terms.isDraining = true;
      stopping ??= stop(server, claim, connections, timeoutMs);
      return stopping;
    },
  };
}

/** The port that a server is bound to; undefined for a Unix socket. */
export function boundPort(server: NetServer): number | undefined {
  const bound = server.address();
  return typeof bound === "object" && bound !== null ? bound.port : undefined;
}

/** An address for people; `port` is the one that was bound. */
export function addressText(address: ListenAddress, port: number | undefined): string {
  return address.kind === "tcp" ? hostPort(address.host, port ?? 0) : address.path;
}

function createBoundedServer(
  handler: (req: IncomingMessage, res: ServerResponse) => void,
  terms: ResponseTerms,
  bounds: ListenerBounds,
): Server {
  const lateMs = Math.min(bounds.headersTimeoutMs, bounds.requestTimeoutMs);
  const server = createServer(
    {
      IncomingMessage: WholeRequest,
      ServerResponse: directResponses(terms),
      headersTimeout: bounds.headersTimeoutMs,
      requestTimeout: bounds.requestTimeoutMs,
      // `IdleConnections` sees to it.
      keepAliveTimeout: 0,
      connectionsCheckingInterval: Math.min(LATE_CHECK_MS, lateMs / LATE_CHECKS_PER_TIMEOUT),
      noDelay: true,
    },
    handler,
  );
  server.maxConnections = bounds.connectionsMax;
  return server;
}

/**
 * Binds a server to an address. A Unix socket is claimed; the caller releases it before it closes.
 *
 * @throws {ListenError} When it cannot; the server is closed then.
 */
export async function bindServer(
  server: NetServer,
  address: ListenAddress,
): Promise<SocketClaim | undefined> {
  if (address.kind === "unix") {
    const { boundAs } = address;
    try {
      if (boundAs !== undefined) {
        await bind(server, { path: boundAs, backlog: BACKLOG_MAX });
        return undefined;
      }
      return await claimUnixSocket(address.path, address.mode, (path) =>
        bind(server, { path, backlog: BACKLOG_MAX }),
      );
    } catch (error) {
      server.close();
      throw error;
    }
  }
  try {
    await bind(server, { host: address.host, port: address.port, backlog: BACKLOG_MAX });
    return undefined;
  } catch (error) {
    const why = errorCode(error) === "EADDRINUSE" ? "the address is in use" : String(error);
    const where = hostPort(address.host, address.port);
    throw new ListenError(`cannot listen on ${where}: ${why}`, { cause: error });
  }
}

function bind(
  server: NetServer,
  options: { path?: string; host?: string; port?: number; backlog: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(options, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

async function stop(
  server: Server,
  claim: SocketClaim | undefined,
  connections: IdleConnections,
  timeoutMs: number,
): Promise<void> {
  claim?.release();
  // So that it counts as in flight.
  await allRead();
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  // Node counts a connection that has sent nothing yet as busy.
  for (const socket of connections.sockets()) if (socket.bytesRead === 0) socket.destroy();
  const timer = setTimeout(() => server.closeAllConnections(), timeoutMs);
  await closed;
  clearTimeout(timer);
}

function hostPort(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
