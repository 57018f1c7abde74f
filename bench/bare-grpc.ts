/**
 * The baseline of the gRPC benchmark: the least that grpc-js can do. It takes the request's bytes
 * as they are and answers every call with the bytes of one real answer.
 */
import { Server, ServerCredentials, type sendUnaryData } from "@grpc/grpc-js";

export const BARE_GRPC_ARGUMENT = "--as-bare-grpc-server";

const raw = (bytes: Buffer): Buffer => bytes;

/** Runs in a process of its own. @param argument - Where to listen and what to say, as JSON. */
export function runBareGrpcServer(argument: string): void {
  const { path, answer } = JSON.parse(argument) as {
    readonly path: string;
    /** In base64. */
    readonly answer: string;
  };
  const bytes = Buffer.from(answer, "base64");
  // Without the statistics of calls, as the sidecar: the harder baseline.
  const server = new Server({ "grpc.enable_channelz": 0 });
  server.addService(
    {
      shouldRateLimit: {
        path: "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
        requestStream: false,
        responseStream: false,
        requestSerialize: raw,
        requestDeserialize: raw,
        responseSerialize: raw,
        responseDeserialize: raw,
      },
    },
    {
      shouldRateLimit: (_call: unknown, callback: sendUnaryData<Buffer>) => callback(null, bytes),
    },
  );
  server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) => {
    if (error !== null) throw error;
  });
}
