/** The project's .proto files through the general codec, to hold the hand-written one against. */
import type { ServiceDefinition } from "@grpc/grpc-js";
import { loadPackageDefinition } from "@grpc/grpc-js";
import { loadSync, type MethodDefinition } from "@grpc/proto-loader";

const PROTO = new URL("../../proto/", import.meta.url).pathname;

const definition = loadSync(
  ["envoy/service/ratelimit/v3/rls.proto", "grpc/health/v1/health.proto"],
  {
    includeDirs: [PROTO],
    longs: Number,
    enums: Number,
    // Absent messages come as null; everything else with its default.
    defaults: true,
    arrays: true,
  },
);

/** Client constructors by package, as grpc-js makes them. */
export const packages = loadPackageDefinition(definition) as unknown as {
  envoy: { service: { ratelimit: { v3: { RateLimitService: ClientConstructor } } } };
  grpc: { health: { v1: { Health: ClientConstructor } } };
};

type ClientConstructor = typeof import("@grpc/grpc-js").Client & { service: ServiceDefinition };

const method = (
  definition["envoy.service.ratelimit.v3.RateLimitService"] as Record<
    string,
    MethodDefinition<object, object>
  >
)["ShouldRateLimit"] as MethodDefinition<object, object>;

/** A request as the general codec takes it. */
export interface PlainRequest {
  domain?: string;
  descriptors?: PlainDescriptor[];
  hitsAddend?: number;
}

export interface PlainDescriptor {
  entries?: { key?: string; value?: string }[];
  limit?: { requestsPerUnit?: number; unit?: number } | null;
  hitsAddend?: { value?: number } | null;
  isNegativeHits?: boolean;
}

/** A response as the general codec gives it. */
export interface PlainResponse {
  overallCode: number;
  statuses: {
    code: number;
    currentLimit: { requestsPerUnit: number; unit: number; name: string } | null;
    limitRemaining: number;
    durationUntilReset: { seconds: number; nanos: number } | null;
  }[];
  responseHeadersToAdd: { key: string; value: string }[];
  dynamicMetadata: { fields: Record<string, object> } | null;
}

export const encodeRequest = (request: PlainRequest): Buffer => method.requestSerialize(request);
export const decodeResponse = (bytes: Buffer): PlainResponse =>
  method.responseDeserialize(bytes) as PlainResponse;
