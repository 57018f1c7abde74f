/**
 * `npm run bench:grpc-codec`: reading and writing Envoy's rate limit messages by hand, against
 * protobufjs through proto-loader with the same .proto files. Both sides take turns in one run.
 */
import { fileURLToPath } from "node:url";
import { loadSync, type MethodDefinition } from "@grpc/proto-loader";
import {
  decodeRateLimitRequest,
  encodeRateLimitResponse,
  FRAME_HEAD_BYTES,
} from "../src/server/grpc/rate-limit-codec.ts";
import type { RateLimitResponse } from "../src/server/rate-limit-messages.ts";
import { machineLine } from "./machine.ts";
import { ratioOf, spreadOf } from "./rounds.ts";

const ROUNDS = 9;
const CALLS = 100_000;

/** From bench/ and from dist/bench/ alike. */
const PROTO = fileURLToPath(
  new URL(import.meta.url.includes("/dist/") ? "../../proto/" : "../proto/", import.meta.url),
);

const { ShouldRateLimit } = loadSync("envoy/service/ratelimit/v3/rls.proto", {
  includeDirs: [PROTO],
  // The options that convert least.
  longs: Number,
  enums: Number,
  defaults: false,
  oneofs: false,
})["envoy.service.ratelimit.v3.RateLimitService"] as unknown as {
  ShouldRateLimit: MethodDefinition<object, object>;
};

/** Two descriptors of two entries each, as an Envoy with a rule per plan and per address sends. */
const request = ShouldRateLimit.requestSerialize({
  domain: "checkout",
  descriptors: [
    { entries: [entry("plan", "free"), entry("user", "4b5ad11e-2b3a-4d20-9a0e-3d7a1f3c9f11")] },
    { entries: [entry("remote_address", "203.0.113.7"), entry("path", "/api/v1/orders")] },
  ],
  hitsAddend: 1,
});

const response: RateLimitResponse = {
  overallCode: 1,
  statuses: [60, 600].map((requestsPerUnit) => ({
    code: 1,
    currentLimit: { requestsPerUnit, unit: 2, name: "" },
    limitRemaining: 41,
    secondsUntilReset: 19,
  })),
  responseHeadersToAdd: [
    { key: "ratelimit-policy", value: '"envoy/checkout/plan=free/user";q=60;w=60' },
    { key: "ratelimit", value: '"envoy/checkout/plan=free/user";r=41;t=19' },
  ],
  dynamicMetadata: undefined,
};

/** The same without defaults: protobufjs writes what is set, also when it is 0 or empty. */
const plainResponse = {
  overallCode: response.overallCode,
  statuses: response.statuses.map(({ code, currentLimit, limitRemaining, secondsUntilReset }) => ({
    code,
    currentLimit: { requestsPerUnit: currentLimit?.requestsPerUnit, unit: currentLimit?.unit },
    limitRemaining,
    durationUntilReset: { seconds: secondsUntilReset },
  })),
  responseHeadersToAdd: response.responseHeadersToAdd,
};

function entry(key: string, value: string): object {
  return { key, value };
}

interface Side {
  readonly read: () => unknown;
  readonly write: () => Buffer;
}

const byHand: Side = {
  read: () => decodeRateLimitRequest(request),
  write: () => encodeRateLimitResponse(response),
};

const general: Side = {
  read: () => ShouldRateLimit.requestDeserialize(request),
  write: () => ShouldRateLimit.responseSerialize(plainResponse),
};

/** Microseconds per call. */
function measure(call: () => unknown): number {
  const start = process.cpuUsage();
  for (let i = 0; i < CALLS; i += 1) call();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / CALLS;
}

function compare(what: string, ours: () => unknown, theirs: () => unknown): void {
  const rounds: { ours: number; theirs: number }[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    rounds.push({ ours: measure(ours), theirs: measure(theirs) });
  }
  // The first round warms both sides up.
  const [a, b] = [rounds.slice(1).map((each) => each.ours), rounds.slice(1).map((r) => r.theirs)];
  const ratio = ratioOf(b, a);
  process.stdout.write(
    `  ${what.padEnd(22)} by hand ${spreadOf(a).median.toFixed(2)} us, ` +
      `protobufjs ${spreadOf(b).median.toFixed(2)} us of processor time: ` +
      `${ratio.median.toFixed(1)} times (${ratio.min.toFixed(1)} to ${ratio.max.toFixed(1)})\n`,
  );
}

if (!byHand.write().subarray(FRAME_HEAD_BYTES).equals(general.write())) {
  throw new Error("the two sides do not write the same bytes");
}
process.stdout.write(`machine: ${machineLine()}\n`);
compare(`a request, ${request.length} bytes`, byHand.read, general.read);
compare(`a response, ${byHand.write().length} bytes`, byHand.write, general.write);
