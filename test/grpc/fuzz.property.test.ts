/** Bytes that no proxy sends, through the real gRPC listener and `POST /json`. */
import { type Client, status } from "@grpc/grpc-js";
import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createHttpApi } from "../../src/server/http-api.ts";
import { type HttpListener, listenHttp } from "../../src/server/listener.ts";
import { createRateLimitJson } from "../../src/server/rate-limit-json.ts";
import { FUZZ_TIMEOUT_MS, fuzzRuns } from "../support/fuzz-runs.ts";
import { encodeRequest } from "./protobuf-js.ts";
import { closeDoors, connect, openDoor, type RateLimitDoor } from "./rate-limit-door.ts";

vi.setConfig({ testTimeout: FUZZ_TIMEOUT_MS });

const RULES = `
domain: d
descriptors:
  - { key: a, rate_limit: { unit: day, requests_per_unit: 1000000 } }
  - { key: b, rate_limit: { unit: day, requests_per_unit: 1 } }
`;

const METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

const listeners: HttpListener[] = [];
const clients: Client[] = [];

afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await Promise.all(listeners.splice(0).map((listener) => listener.stop(500)));
  await closeDoors();
});

const number = fc.oneof(fc.constantFrom(0, 1, 2), fc.nat(4_294_967_295));
const plainRequest = fc.record({
  domain: fc.constantFrom("d", "d", "d", "", "other"),
  hitsAddend: number,
  descriptors: fc.array(
    fc.record({
      entries: fc.array(
        fc.record({ key: fc.constantFrom("a", "b", "c"), value: fc.string({ unit: "binary" }) }),
        { maxLength: 3 },
      ),
      limit: fc.option(fc.record({ requestsPerUnit: number, unit: fc.nat(8) })),
      hitsAddend: fc.option(fc.record({ value: fc.maxSafeNat() })),
    }),
    { maxLength: 18 },
  ),
});

/** A request in which some bytes were changed, or which lost its end. */
const broken = fc
  .tuple(
    plainRequest,
    fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }),
    fc.option(fc.nat()),
  )
  .map(([request, changes, cut]) => {
    const bytes = Buffer.from(encodeRequest(request));
    for (const [at, value] of changes) if (bytes.length > 0) bytes[at % bytes.length] = value;
    return cut === null ? bytes : bytes.subarray(0, cut % (bytes.length + 1));
  });
/** Most are answered, so that what follows a refusal is looked at as well. */
const whole = fc.record({
  domain: fc.constant("d"),
  hitsAddend: fc.nat(2),
  descriptors: fc.array(
    fc.record({
      entries: fc.tuple(fc.record({ key: fc.constantFrom("a", "b"), value: fc.string() })),
    }),
    { minLength: 1, maxLength: 3 },
  ),
});
const anyBytes = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));

/** @returns The status code of a call with these bytes as its message. */
function callWith(client: Client, bytes: Buffer): Promise<number> {
  const raw = (buffer: Buffer): Buffer => buffer;
  const options = { deadline: Date.now() + 10_000 };
  return new Promise((resolve) => {
    client.makeUnaryRequest(METHOD, raw, raw, bytes, options, (error) =>
      resolve(error === null ? status.OK : error.code),
    );
  });
}

const touched = ({ decider }: RateLimitDoor): number => decider.decided + decider.reported;

describe("whatever comes over gRPC", () => {
  it("as bytes is answered or refused as invalid, and never charged when refused", async () => {
    const door = await openDoor(RULES);
    const client = connect(door.socket);
    clients.push(client);
    const seen = new Set<number>();
    await fc.assert(
      fc.asyncProperty(fc.oneof(anyBytes, broken, whole.map(encodeRequest)), async (bytes) => {
        const before = touched(door);
        const code = await callWith(client, bytes);
        seen.add(code);
        expect([status.OK, status.INVALID_ARGUMENT]).toContain(code);
        if (code !== status.OK) expect(touched(door)).toBe(before);
      }),
      { numRuns: fuzzRuns(600) },
    );
    expect(seen.size).toBe(2);
    expect(door.faults).toEqual([]);
  });
});

describe("whatever is posted to /json", () => {
  it("is answered below 500, and never charged when refused", async () => {
    const door = await openDoor(RULES);
    const clock = { monotonicUs: () => door.decider.sole.now };
    const { service } = door;
    const api = createHttpApi(door.decider, {
      clock,
      wallMs: () => 0,
      rateLimitJson: createRateLimitJson({ service, clock, observeUs: () => {} }),
      onUnexpectedError: (error) => door.faults.push(error),
    });
    const listener = await listenHttp(api, { kind: "tcp", host: "127.0.0.1", port: 0 });
    listeners.push(listener);
    const bodies = fc.oneof(
      anyBytes,
      broken,
      fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value))),
      fc.oneof(plainRequest, whole).map((request) => Buffer.from(JSON.stringify(request))),
    );
    const seen = new Set<number>();
    await fc.assert(
      fc.asyncProperty(bodies, async (bytes) => {
        const before = touched(door);
        const url = `http://${listener.address}/json`;
        const answer = await fetch(url, { method: "POST", body: new Uint8Array(bytes) });
        await answer.arrayBuffer();
        seen.add(answer.status);
        expect(answer.status).toBeLessThan(500);
        if (answer.status !== 200 && answer.status !== 429) expect(touched(door)).toBe(before);
      }),
      { numRuns: fuzzRuns(400) },
    );
    expect(seen).toContain(200);
    expect(seen).toContain(400);
    expect(door.faults).toEqual([]);
  });
});
