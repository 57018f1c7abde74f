import { describe, expect, it } from "vitest";
import {
  decodeRateLimitRequest,
  encodeRateLimitResponse,
} from "../../src/server/grpc/rate-limit-codec.ts";
import { CODE_OVER_LIMIT } from "../../src/server/rate-limit-messages.ts";

const bytesOf = (hex: string): Buffer => Buffer.from(hex.replaceAll(" ", ""), "hex");

describe("golden bytes of the rate limit service", () => {
  it("reads a request as Envoy sends it", () => {
    const bytes = bytesOf(
      "0a 03 776562" + // domain: "web"
        " 12 14" + // descriptors
        " 0a 0c 0a 04 706c616e 12 04 66726565" + // entry plan = free
        " 12 04 08 05 10 02" + // limit: 5 per minute
        " 12 0d" +
        " 0a 07 0a 01 61 12 02 c3a9" + // entry a = é
        " 1a 00" + // hits_addend present, 0
        " 20 01" + // is_negative_hits
        " 18 07", // hits_addend: 7
    );
    expect(decodeRateLimitRequest(bytes)).toEqual({
      domain: "web",
      descriptors: [
        {
          entries: [{ key: "plan", value: "free" }],
          limit: { requestsPerUnit: 5, unit: 2 },
          hitsAddend: undefined,
          isNegativeHits: false,
        },
        {
          entries: [{ key: "a", value: "é" }],
          limit: undefined,
          hitsAddend: 0,
          isNegativeHits: true,
        },
      ],
      hitsAddend: 7,
    });
  });

  it("writes a response as Envoy reads it", () => {
    const response = encodeRateLimitResponse({
      overallCode: CODE_OVER_LIMIT,
      statuses: [
        {
          code: CODE_OVER_LIMIT,
          currentLimit: { requestsPerUnit: 300, unit: 1, name: "ip" },
          limitRemaining: 0,
          secondsUntilReset: 59,
        },
        {
          code: 1,
          currentLimit: undefined,
          limitRemaining: 4_294_967_295,
          secondsUntilReset: undefined,
        },
      ],
      responseHeadersToAdd: [{ key: "retry-after", value: "59" }],
      dynamicMetadata: { a: true },
    });
    expect(response.toString("hex")).toBe(
      bytesOf(
        "00 0000003d" + // not compressed, 61 bytes
          " 08 02" +
          " 12 11 08 02 12 09 08 ac02 10 01 1a 02 6970 22 02 08 3b" +
          " 12 08 08 01 18 ffffffff0f" +
          " 1a 11 0a 0b 72657472792d6166746572 12 02 3539" +
          " 32 09 0a 07 0a 01 61 12 02 20 01",
      ).toString("hex"),
    );
  });

  it("passes over what it does not know, also where a number has an unknown encoding", () => {
    const bytes = bytesOf(
      "20 01" + // field 4, a number
        " 2a 02 ffff" + // field 5, bytes
        " 31 0102030405060708 3d 01020304" + // fixed 64 and 32
        " 1a 01 00" + // hits_addend as bytes
        " 0a 01 78",
    );
    expect(decodeRateLimitRequest(bytes)).toEqual({ domain: "x", descriptors: [], hitsAddend: 0 });
  });

  it("takes the last of a field that comes twice, and merges a message that does", () => {
    const bytes = bytesOf("0a 01 78 0a 01 79 12 08 12 02 08 05 12 02 10 01");
    expect(decodeRateLimitRequest(bytes)).toMatchObject({
      domain: "y",
      descriptors: [{ limit: { requestsPerUnit: 5, unit: 1 } }],
    });
  });

  it("reads the largest numbers of 32 and 64 bits", () => {
    const most = "ffffffffffffffffff01";
    const bytes = bytesOf(`18 ${most} 12 0d 1a 0b 08 ${most}`);
    expect(decodeRateLimitRequest(bytes)).toMatchObject({
      hitsAddend: 4_294_967_295,
      descriptors: [{ hitsAddend: Number.MAX_SAFE_INTEGER }],
    });
  });

  it.each([
    ["a number of eleven bytes", "18 ffffffffffffffffffff01"],
    ["a field longer than the message", "0a 05 78"],
    ["a length beyond any message", "0a ffffffffffffffff7f"],
    ["a nested field longer than its message", "12 02 0a 05 0000000000"],
    ["field number 0", "00 01"],
    ["a group", "1b 1c"],
    ["a tag without its value", "18"],
  ])("refuses %s with a sentence", (_, hex) => {
    expect(decodeRateLimitRequest(bytesOf(hex))).toMatch(/^[a-z].{10,}$/);
  });

  it("keeps what can be read of a value that is not UTF-8", () => {
    const decoded = decodeRateLimitRequest(bytesOf("0a 05 61 ff c3a9 80"));
    expect(decoded).toMatchObject({ domain: "a\udcffé\udc80" });
  });
});
