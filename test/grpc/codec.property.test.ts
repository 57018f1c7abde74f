import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import {
  decodeRateLimitRequest,
  encodeRateLimitResponse,
  FRAME_HEAD_BYTES,
} from "../../src/server/grpc/rate-limit-codec.ts";
import type { RateLimitResponse } from "../../src/server/rate-limit-messages.ts";
import { FUZZ_TIMEOUT_MS, fuzzRuns } from "../support/fuzz-runs.ts";
import { decodeResponse, encodeRequest } from "./protobuf-js.ts";

vi.setConfig({ testTimeout: FUZZ_TIMEOUT_MS });

/** The message in a frame. */
function messageOf(frame: Buffer): Buffer {
  expect(frame[0]).toBe(0);
  expect(frame.readUInt32BE(1)).toBe(frame.length - FRAME_HEAD_BYTES);
  return frame.subarray(FRAME_HEAD_BYTES);
}

const uint32 = fc.oneof(fc.nat(300), fc.nat(4_294_967_295), fc.constant(4_294_967_295));
/** Short and long, ASCII and not: lengths on both sides of what one byte can tell. */
const text = fc.oneof(
  fc.string({ maxLength: 8 }),
  fc.string({ unit: "binary", maxLength: 50 }),
  fc.integer({ min: 120, max: 300 }).map((length) => "x".repeat(length)),
  fc.constant("y".repeat(20_000)),
);

const requests = fc.record({
  domain: text,
  hitsAddend: uint32,
  descriptors: fc.array(
    fc.record({
      entries: fc.array(fc.record({ key: text, value: text }), { maxLength: 4 }),
      limit: fc.option(
        fc.record({ requestsPerUnit: uint32, unit: fc.integer({ min: 0, max: 6 }) }),
      ),
      hitsAddend: fc.option(fc.record({ value: fc.maxSafeNat() })),
      isNegativeHits: fc.boolean(),
    }),
    { maxLength: 5 },
  ),
});

const responses: fc.Arbitrary<RateLimitResponse> = fc.record({
  overallCode: fc.constantFrom(1 as const, 2 as const),
  statuses: fc.array(
    fc.record({
      code: fc.constantFrom(1 as const, 2 as const),
      currentLimit: fc.option(
        fc.record({ requestsPerUnit: uint32, unit: fc.integer({ min: 0, max: 7 }), name: text }),
        { nil: undefined },
      ),
      limitRemaining: uint32,
      secondsUntilReset: fc.option(fc.nat(4_000_000_000), { nil: undefined }),
    }),
    { maxLength: 5 },
  ),
  responseHeadersToAdd: fc.array(fc.record({ key: text, value: text }), { maxLength: 4 }),
  dynamicMetadata: fc.option(fc.dictionary(text, fc.jsonValue({ maxDepth: 3 })), {
    nil: undefined,
  }),
});

describe("the hand-written codec of the rate limit service", () => {
  it("reads every request that protobufjs writes", () => {
    fc.assert(
      fc.property(requests, (request) => {
        expect(decodeRateLimitRequest(encodeRequest(request))).toEqual({
          domain: request.domain,
          hitsAddend: request.hitsAddend,
          descriptors: request.descriptors.map(
            ({ entries, limit, hitsAddend, isNegativeHits }) => ({
              entries,
              limit: limit ?? undefined,
              hitsAddend: hitsAddend?.value,
              isNegativeHits,
            }),
          ),
        });
      }),
      { numRuns: fuzzRuns(1_000) },
    );
  });

  it("writes every response so that protobufjs reads it back", () => {
    fc.assert(
      fc.property(responses, (response) => {
        const read = decodeResponse(messageOf(encodeRateLimitResponse(response)));
        expect(read.overallCode).toBe(response.overallCode);
        expect(read.statuses.map((status) => ({ ...status }))).toEqual(
          response.statuses.map((status) => ({
            code: status.code,
            currentLimit: status.currentLimit ?? null,
            limitRemaining: status.limitRemaining,
            durationUntilReset: durationOf(status.secondsUntilReset),
          })),
        );
        expect(read.responseHeadersToAdd.map(({ key, value }) => ({ key, value }))).toEqual(
          response.responseHeadersToAdd,
        );
        const fields = read.dynamicMetadata?.fields;
        const plain = fields === undefined ? undefined : plainFields(fields);
        expect(plain).toEqual(response.dynamicMetadata);
      }),
      { numRuns: fuzzRuns(1_000) },
    );
  });

  it("answers any bytes with a request or a sentence, and never hangs", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const decoded = decodeRateLimitRequest(Buffer.from(bytes));
        expect(["string", "object"]).toContain(typeof decoded);
      }),
      { numRuns: fuzzRuns(20_000) },
    );
  });

  it("reads a request that lost its end as a request or a sentence", () => {
    fc.assert(
      fc.property(requests, fc.nat(), (request, cut) => {
        const bytes = encodeRequest(request);
        const decoded = decodeRateLimitRequest(bytes.subarray(0, cut % (bytes.length + 1)));
        expect(["string", "object"]).toContain(typeof decoded);
      }),
    );
  });

  it("never takes two different byte strings for one value", () => {
    const value = fc.uint8Array({ maxLength: 6 });
    fc.assert(
      fc.property(value, value, (a, b) => {
        fc.pre(Buffer.compare(a, b) !== 0);
        expect(valueRead(a)).not.toBe(valueRead(b));
      }),
      { numRuns: fuzzRuns(5_000) },
    );
  });
});

function durationOf(seconds: number | undefined): object | null {
  return seconds === undefined ? null : { seconds, nanos: 0 };
}

/** The value of the only entry of a request that holds these bytes there. */
function valueRead(bytes: Uint8Array): string {
  const field = (number: number, content: Uint8Array): Buffer =>
    Buffer.concat([Buffer.from([number * 8 + 2, content.length]), content]);
  const request = decodeRateLimitRequest(field(2, field(1, field(2, bytes))));
  if (typeof request === "string") throw new Error(request);
  return request.descriptors[0]?.entries[0]?.value as string;
}

type PlainValue = Record<string, unknown> & { kind?: string };

/** A `google.protobuf.Struct` as protobufjs gives it, as a plain object. */
function plainFields(fields: Record<string, object>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [key, plainValue(value as PlainValue)]),
  );
}

function plainValue(value: PlainValue): unknown {
  if ("numberValue" in value) return value["numberValue"];
  if ("stringValue" in value) return value["stringValue"];
  if ("boolValue" in value) return value["boolValue"];
  if ("structValue" in value) {
    return plainFields((value["structValue"] as { fields: Record<string, object> }).fields);
  }
  if ("listValue" in value) {
    return (value["listValue"] as { values: PlainValue[] }).values.map(plainValue);
  }
  return null;
}
