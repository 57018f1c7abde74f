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
  status,
} from "@grpc/grpc-js";
import type { DurationUs } from "../../core/units.ts";
import type { Clock } from "../../ports/clock.ts";
import {
  addressText,
  bindServer,
  boundPort,
  type HttpListener,
  type ListenAddress,
} from "../listener.ts";
import type { RateLimitRequest } from "../rate-limit-messages.ts";
import {
  type RateLimitAnswer,
  type RateLimitService,
  RefusedRequest,
} from "../rate-limit-service.ts";
import { HEALTH_DEFINITION, HealthService } from "./health.ts";
import { decodeRateLimitRequest, encodeRateLimitResponse } from "./rate-limit-codec.ts";

const SERVICE_NAME = "envoy.service.ratelimit.v3.RateLimitService";

/** Largest request; Envoy's own descriptors have some hundred bytes. */
const MESSAGE_BYTES_MAX = 65_536;

/** Calls of one connection at once; Envoy opens another connection beyond it. */
const STREAMS_MAX = 1_024;

/** More connections are closed as soon as they are accepted. */
const CONNECTIONS_MAX = 1_024;

const OPTIONS: ServerOptions = {
  "grpc.max_receive_message_length": MESSAGE_BYTES_MAX,
  "grpc.max_concurrent_streams": STREAMS_MAX,
  // A peer that is gone without a word is noticed, and one that is idle gives its memory back:
  // probes that connect and never return would otherwise pile up.
  "grpc.keepalive_time_ms": 60_000,
  "grpc.keepalive_timeout_ms": 20_000,
  "grpc.max_connection_idle_ms": 300_000,
  // Statistics of every call, kept for a service that is not offered.
  "grpc.enable_channelz": 0,
};

export interface GrpcParts {
  readonly service: RateLimitService;
  readonly clock: Clock;
  /** Told how long each call took from its request to its answer. */
  readonly observeUs: (duration: DurationUs) => void;
  /** A call met a bug. It was answered with UNAVAILABLE. */
  readonly onUnexpectedError: (error: unknown) => void;
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
  const grpc = new Server(OPTIONS);
  grpc.addService(DEFINITION, {
    shouldRateLimit: (call: Call, callback: Callback) => answer(parts, call.request, callback),
  });
  grpc.addService(HEALTH_DEFINITION, health.implementation);
  const injector = grpc.createConnectionInjector(ServerCredentials.createInsecure());
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
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
        stopping = stop(server, grpc, sockets, timeoutMs);
      }
      return stopping;
    },
  };
}

type Call = ServerUnaryCall<RateLimitRequest | string, Buffer>;
type Callback = sendUnaryData<Buffer>;

const DEFINITION: ServiceDefinition = {
  shouldRateLimit: {
    path: `/${SERVICE_NAME}/ShouldRateLimit`,
    requestStream: false,
    responseStream: false,
    requestSerialize: (bytes: Buffer) => bytes,
    // Bytes that are no message come through as a sentence: a throw here would be INTERNAL.
    requestDeserialize: decodeRateLimitRequest,
    responseSerialize: (bytes: Buffer) => bytes,
    responseDeserialize: (bytes: Buffer) => bytes,
  },
};

/** Never throws, and never answers UNKNOWN: a caller could not tell it from a broken network. */
function answer(parts: GrpcParts, request: RateLimitRequest | string, callback: Callback): void {
  const startedUs = parts.clock.monotonicUs();
  const fail = (error: unknown): void => {
    parts.onUnexpectedError(error);
    callback({ code: status.UNAVAILABLE, details: "the sidecar met a fault of its own" });
  };
  const send = (decided: RateLimitAnswer): void => {
    if (decided instanceof RefusedRequest) {
      const isOwnFault = decided.closedLimit === undefined;
      const code = isOwnFault ? status.INVALID_ARGUMENT : status.UNAVAILABLE;
      callback({ code, details: decided.message });
    } else {
      callback(null, encodeRateLimitResponse(decided));
    }
    parts.observeUs(parts.clock.monotonicUs() - startedUs);
  };
  try {
    if (typeof request === "string") {
      send(new RefusedRequest(`the request is no RateLimitRequest: ${request}`));
      return;
    }
    const decided = parts.service.shouldRateLimit(request);
    if (decided instanceof Promise) decided.then(send).catch(fail);
    else send(decided);
  } catch (error) {
    fail(error);
  }
}

async function stop(
  server: NetServer,
  grpc: Server,
  sockets: ReadonlySet<Socket>,
  timeoutMs: number,
): Promise<void> {
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
