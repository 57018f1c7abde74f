/**
 * `grpc.health.v1.Health`: whether the server answers, for probes and load balancers.
 *
 * It serves as long as it is not stopping. Like readiness it never depends on the store: a pod
 * whose store is away still answers, by its fallback.
 */
import type {
  ServerUnaryCall,
  ServerWritableStream,
  ServiceDefinition,
  sendUnaryData,
  UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { status } from "@grpc/grpc-js";
import { BYTES, WireError, WireReader } from "./wire-reader.ts";
import { WireWriter } from "./wire-writer.ts";

const SERVING = 1;
const NOT_SERVING = 2;
const SERVICE_UNKNOWN = 3;

/** Most streams that wait for changes; each holds memory until its caller ends it. */
const WATCHERS_MAX = 1_000;

/** An object, because grpc-js takes a request that is falsy for one that never came. */
interface HealthRequest {
  /** Undefined for bytes that are no request. */
  readonly service: string | undefined;
}

type Watcher = ServerWritableStream<HealthRequest, number>;

export const HEALTH_DEFINITION: ServiceDefinition = {
  check: {
    path: "/grpc.health.v1.Health/Check",
    requestStream: false,
    responseStream: false,
    requestSerialize: unused,
    requestDeserialize: decodeRequest,
    responseSerialize: encodeResponse,
    responseDeserialize: unused,
  },
  watch: {
    path: "/grpc.health.v1.Health/Watch",
    requestStream: false,
    responseStream: true,
    requestSerialize: unused,
    requestDeserialize: decodeRequest,
    responseSerialize: encodeResponse,
    responseDeserialize: unused,
  },
};

export class HealthService {
  readonly #services: ReadonlySet<string>;
  readonly #watchers = new Set<Watcher>();
  #isServing = true;

  /** @param services - Full names of the services that share the server's health. */
  constructor(services: readonly string[]) {
    this.#services = new Set(["", ...services]);
  }

  get implementation(): UntypedServiceImplementation {
    return {
      check: (call: ServerUnaryCall<HealthRequest, number>, callback: sendUnaryData<number>) =>
        this.#check(call.request, callback),
      watch: (call: Watcher) => this.#watch(call),
    };
  }

  /** Tells every watcher that the server stops, and ends their streams. */
  stopServing(): void {
    this.#isServing = false;
    for (const watcher of this.#watchers) {
      watcher.write(NOT_SERVING);
      watcher.end();
    }
    this.#watchers.clear();
  }

  get #state(): number {
    return this.#isServing ? SERVING : NOT_SERVING;
  }

  #check({ service }: HealthRequest, callback: sendUnaryData<number>): void {
    if (service === undefined) {
      callback({ code: status.INVALID_ARGUMENT, details: "not a HealthCheckRequest" });
    } else if (this.#services.has(service)) {
      callback(null, this.#state);
    } else {
      callback({ code: status.NOT_FOUND, details: "there is no such service here" });
    }
  }

  #watch(watcher: Watcher): void {
    const { service } = watcher.request;
    if (service === undefined) {
      watcher.emit("error", { code: status.INVALID_ARGUMENT, details: "not a HealthCheckRequest" });
      return;
    }
    if (this.#watchers.size >= WATCHERS_MAX) {
      watcher.emit("error", { code: status.RESOURCE_EXHAUSTED, details: "too many watchers" });
      return;
    }
    const isKnown = this.#services.has(service);
    watcher.write(isKnown ? this.#state : SERVICE_UNKNOWN);
    if (!this.#isServing) {
      watcher.end();
      return;
    }
    // A service that is not here may come to be, says the protocol: the stream stays open.
    if (isKnown) {
      this.#watchers.add(watcher);
      watcher.once("close", () => this.#watchers.delete(watcher));
      watcher.once("cancelled", () => this.#watchers.delete(watcher));
    }
  }
}

function decodeRequest(bytes: Buffer): HealthRequest {
  try {
    const reader = new WireReader(bytes);
    let service = "";
    while (!reader.isAtEnd) {
      const tag = reader.tag();
      if (tag === 8 + BYTES) service = reader.text();
      else reader.skip(tag);
    }
    return { service };
  } catch (error) {
    if (error instanceof WireError) return { service: undefined };
    throw error;
  }
}

function encodeResponse(state: number): Buffer {
  const writer = new WireWriter();
  writer.uint(1, state);
  return writer.finish();
}

/** The half of a method that only a client needs. */
function unused(): never {
  throw new Error("this side only serves");
}
