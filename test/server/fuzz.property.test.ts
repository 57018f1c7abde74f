import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { FUZZ_TIMEOUT_MS, fuzzRuns } from "../support/fuzz-runs.ts";
import { ExactDecider, HOUR_US, limitOf } from "./exact-decider.ts";
import { type Answer, type Served, serve } from "./http-client.ts";

vi.setConfig({ testTimeout: FUZZ_TIMEOUT_MS });

let decider: ExactDecider;
let served: Served;

beforeAll(async () => {
  decider = new ExactDecider([limitOf("hourly", { tokens: 1, spanUs: HOUR_US, burst: 1_000 })]);
  served = await serve(decider);
});

afterAll(async () => {
  await served.stop();
  expect(served.faults).toEqual([]);
});

const POSTS = ["/v1/check", "/v1/check?deny_status=429", "/v1/check/batch", "/v1/report"];
const GETS = ["/v1/check", "/v1/limits", "/v1/limits/hourly", "/openapi.json", "/nowhere"];

/** Fields with the right names and, often, the right values, so that some requests get far. */
const checkLike = fc.record(
  {
    limit: fc.oneof(fc.constant("hourly"), fc.jsonValue()),
    key: fc.oneof(fc.string({ unit: "binary" }), fc.jsonValue()),
    cost: fc.oneof(fc.integer({ min: -2, max: 1_000_000_001 }), fc.jsonValue()),
  },
  { requiredKeys: [] },
);

const jsonBodies = fc.oneof(
  fc.jsonValue(),
  checkLike,
  fc.record({ checks: fc.array(checkLike, { maxLength: 18 }) }),
  fc.record({ requests: fc.array(fc.oneof(checkLike, fc.jsonValue()), { maxLength: 5 }) }),
);

/** What every answer must be, whatever was asked. */
function expectSane(answer: Answer): void {
  expect(answer.status).toBeLessThan(500);
  const length = answer.headers["content-length"] ?? "0";
  expect(Number(length)).toBe(Buffer.byteLength(answer.text));
  if (answer.status >= 400 && answer.status !== 429) {
    expect(answer.headers["content-type"]).toBe("application/problem+json");
    expect(answer.json).toMatchObject({ status: answer.status });
  }
}

/** Sends a request and expects that a refused one was never decided, on one kept connection. */
async function expectHarmless(method: string, path: string, body?: string | Buffer): Promise<void> {
  const before = decider.decided + decider.reported;
  const answer = await served.client.send(method, path, body);
  expectSane(answer);
  const refused = answer.status >= 400 && answer.status !== 429;
  if (refused) expect(decider.decided + decider.reported).toBe(before);
  const next = await served.client.check({ limit: "hourly", key: "witness", cost: 0 });
  expect(next.json.remaining).toBe(1_000);
  expect(next.localPort).toBe(answer.localPort);
}

describe("whatever is sent", () => {
  it("as bytes is never answered 5xx, nor charged when refused", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...POSTS),
        fc.uint8Array({ maxLength: 200 }),
        (path, bytes) => expectHarmless("POST", path, Buffer.from(bytes)),
      ),
      { numRuns: fuzzRuns(400) },
    );
  });

  it("as JSON is never answered 5xx, nor charged when refused", async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...POSTS), jsonBodies, (path, body) =>
        expectHarmless("POST", path, JSON.stringify(body)),
      ),
      { numRuns: fuzzRuns(600) },
    );
  });

  it("as a query is never answered 5xx, nor charged when refused", async () => {
    const pairs = fc.tuple(
      fc.constantFrom("limit", "key", "cost", "deny_status", "%", "x"),
      fc.oneof(fc.constantFrom("hourly", "1", "k", "429"), fc.stringMatching(/^[!-~]{0,20}$/)),
    );
    const queries = fc
      .array(pairs, { maxLength: 5 })
      .map((fields) => fields.map(([name, value]) => `${name}=${value}`).join("&"));
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...GETS, ...POSTS),
        fc.constantFrom("GET", "POST", "OPTIONS", "DELETE"),
        queries,
        (path, method, query) =>
          expectHarmless(method, `${path}${path.includes("?") ? "&" : "?"}${query}`),
      ),
      { numRuns: fuzzRuns(600) },
    );
  });

  it("as a path is answered below 500", async () => {
    await fc.assert(
      fc.asyncProperty(fc.stringMatching(/^[!-~]{0,40}$/), (text) =>
        expectHarmless("GET", `/v1/limits/${text}`),
      ),
      { numRuns: fuzzRuns(200) },
    );
  });
});
