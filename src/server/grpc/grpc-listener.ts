/**
 * The gRPC listener: Envoy's rate limit service and gRPC health, on a Unix socket or loopback TCP.
 *
 * The sockets are ours and grpc-js gets each accepted connection: its own way of binding leaves a
 * Unix socket with the mode of the umask, does not replace a stale one, and knows no maximum of
 * connections.
 */
import { createServer, type Server as NetServer, type Socket } from "node:net";
import {
  Server,
  ServerCredentials,
  type ServerOptions,
  type ServerUnaryCall,
  type ServiceDefinition,
  type sendUnaryData,
} from "@grpc/grpc-js";
import { allRead } from "../all-read.ts";
import {
  addressText,
  bindServer,
  boundPort,
  type HttpListener,
  type ListenAddress,
} from "../listener.ts";
import { answerDirectly } from "./direct-calls.ts";
import { HEALTH_DEFINITION, HealthService } from "./health.ts";
import { IdleSessions } from "./idle-sessions.ts";
import { type RateLimitCallParts, RateLimitCalls, RefusedCall } from "./rate-limit-calls.ts";
import { FRAME_HEAD_BYTES } from "./rate-limit-codec.ts";

const SERVICE_NAME = "envoy.service.ratelimit.v3.RateLimitService";

/** Largest request; Envoy's own descriptors have some hundred bytes. */
const MESSAGE_BYTES_MAX = 65_536;

/** Calls of one connection at once; Envoy opens another connection beyond it. */
const STREAMS_MAX = 1_024;

/** More connections are closed as soon as they are accepted. */
const CONNECTIONS_MAX = 1_024;

/**
 * A peer on TCP that is gone without a word is asked for by the kernel after so long. The pings of
 * grpc-js would be timed in this process, and cut a connection whose answer lies unread after a
 * moment in which it did not run.
 */
const KEEP_ALIVE_MS = 60_000;

/** A connection that nobody calls over is closed after so long. */
const IDLE_MS = 300_000;

const OPTIONS: ServerOptions = {
  "grpc.max_receive_message_length": MESSAGE_BYTES_MAX,
  "grpc.max_concurrent_streams": STREAMS_MAX,
  // Statistics of every call, kept for a service that is not offered.
  "grpc.enable_channelz": 0,
};

const SOCKET_OPTIONS = {
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: KEEP_ALIVE_MS,
} as const;

export interface GrpcParts extends RateLimitCallParts {
  /** A connection could not be accepted (file descriptors ran out). */
  readonly onAcceptError?: (error: Error) => void;
}

/**
 * Opens a listener. Stopping it tells health watchers, ends every connection with GOAWAY once its
 * calls are answered, and cuts what is left after the time given.
 *
 * @throws {ListenError} When the address cannot be bound; the message names it.
 */
export async function listenGrpc(parts: GrpcParts, address: ListenAddress): Promise<HttpListener> {
  const health = new HealthService([SERVICE_NAME]);
  const calls = new RateLimitCalls(parts);
  const idle = new IdleSessions(IDLE_MS);
  const grpc = new Server(OPTIONS);
  grpc.addService(DEFINITION, {
    shouldRateLimit: (call: Call, callback: Callback) => answer(calls, call.request, callback),
  });
  grpc.addService(HEALTH_DEFINITION, health.implementation);
  const injector = grpc.createConnectionInjector(ServerCredentials.createInsecure());
  answerDirectly(grpc, { calls, path: PATH, messageBytesMax: MESSAGE_BYTES_MAX, idle });
  const sockets = new Set<Socket>();
  const server = createServer(SOCKET_OPTIONS, (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    // Before and after HTTP/2 has the socket, a reset must not be an error that nobody handles.
    socket.on("error", () => {});
    injector.injectConnection(socket);
  });
  server.maxConnections = CONNECTIONS_MAX;
  const claim = await bindServer(server, address);
  server.on("error", parts.onAcceptError ?? (() => {}));
  const port = boundPort(server);
  let stopping: Promise<void> | undefined;
  return {
    address: addressText(address, port),
    port,
    stop: (timeoutMs) => {
      if (stopping === undefined) {
        claim?.release();
        health.stopServing();
        idle.stop();
        stopping = stop(server, grpc, sockets, timeoutMs);
      }
      return stopping;
    },
  };
}

type Call = ServerUnaryCall<Buffer, Buffer>;
type Callback = sendUnaryData<Buffer>;

const PATH = `/${SERVICE_NAME}/ShouldRateLimit`;

const bytes = (message: Buffer): Buffer => message;

const DEFINITION: ServiceDefinition = {
  shouldRateLimit: {
    path: PATH,
    requestStream: false,
    responseStream: false,
    requestSerialize: bytes,
    // Decoded later: a throw here would be INTERNAL.
    requestDeserialize: bytes,
    responseSerialize: bytes,
    responseDeserialize: bytes,
  },
};

async function answer(calls: RateLimitCalls, request: Buffer, callback: Callback): Promise<void> {
  const answered = await calls.answer(request);
  if (answered instanceof RefusedCall) callback(answered);
  else callback(null, answered.subarray(FRAME_HEAD_BYTES));
}

async function stop(
  server: NetServer,
  grpc: Server,
  sockets: ReadonlySet<Socket>,
  timeoutMs: number,
): Promise<void> {
  await allRead();
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  // Not `forceShutdown`: it knows no connections when the statistics of calls are off.
  const timer = setTimeout(() => {
    for (const socket of sockets) socket.destroy();
  }, timeoutMs);
  await new Promise<void>((resolve) => {
    grpc.tryShutdown(() => resolve());
  });
  await closed;
  clearTimeout(timer);
}
