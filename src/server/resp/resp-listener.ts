/** The listener for the Redis protocol, on a Unix socket or loopback TCP. */
import { createServer, type Server, type Socket } from "node:net";
import { allRead } from "../all-read.ts";
import { IdleConnections } from "../idle-connections.ts";
import {
  addressText,
  bindServer,
  boundPort,
  type HttpListener,
  type ListenAddress,
} from "../listener.ts";
import type { SocketClaim } from "../unix-socket.ts";
import { RespConnection } from "./resp-connection.ts";
import { type RespParts, RespService } from "./resp-service.ts";

/** What bounds a listener. */
export interface RespBounds {
  /**
   * A connection over which nothing goes is closed after this, in ms. Clients of Redis keep theirs
   * for long and expect the same of the server, but those that are gone must be noticed some day.
   */
  readonly idleTimeoutMs: number;
  /** More connections are closed as soon as they are accepted. */
  readonly connectionsMax: number;
}

const DEFAULT_BOUNDS: RespBounds = { idleTimeoutMs: 300_000, connectionsMax: 4_096 };

/**
 * Opens a listener. Stopping it answers what has come, closes every connection, and cuts what is
 * left after the time given.
 *
 * @param onAcceptError - Told when a connection could not be accepted (file descriptors ran out).
 * @throws {ListenError} When the address cannot be bound; the message names it.
 */
export async function listenResp(
  parts: RespParts,
  address: ListenAddress,
  bounds: Partial<RespBounds> = {},
  onAcceptError: (error: Error) => void = () => {},
): Promise<HttpListener> {
  const { idleTimeoutMs, connectionsMax } = { ...DEFAULT_BOUNDS, ...bounds };
  const service = new RespService(parts);
  const idle = new IdleConnections(idleTimeoutMs);
  const connections = new Map<Socket, RespConnection>();
  let lastId = 0;
  // A client that has ended its side still waits for its replies.
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
    lastId += 1;
    connections.set(socket, new RespConnection(socket, service, lastId));
    socket.once("close", () => connections.delete(socket));
    idle.add(socket);
  });
  server.maxConnections = connectionsMax;
  server.once("close", () => idle.stop());
  const claim = await bindServer(server, address);
  server.on("error", onAcceptError);
  const port = boundPort(server);
  let stopping: Promise<void> | undefined;
  return {
    address: addressText(address, port),
    port,
    stop: (timeoutMs) => {
      stopping ??= stop(server, claim, connections, timeoutMs);
      return stopping;
    },
  };
}

async function stop(
  server: Server,
  claim: SocketClaim | undefined,
  connections: ReadonlyMap<Socket, RespConnection>,
  timeoutMs: number,
): Promise<void> {
  claim?.release();
  await allRead();
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  for (const connection of connections.values()) connection.finish();
  const timer = setTimeout(() => {
    for (const socket of connections.keys()) socket.destroy();
  }, timeoutMs);
  await closed;
  clearTimeout(timer);
}
