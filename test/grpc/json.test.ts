import { afterEach, describe, expect, it } from "vitest";
import { createHttpApi } from "../../src/server/http-api.ts";
import { type HttpListener, listenHttp } from "../../src/server/listener.ts";
import { createRateLimitJson } from "../../src/server/rate-limit-json.ts";
import { closeDoors, openDoor, type RateLimitDoor } from "./rate-limit-door.ts";

const RULES = `
domain: d
descriptors:
  - { key: a, rate_limit: { unit: minute, requests_per_unit: 2, name: two } }
  - { key: none, rate_limit: { unit: minute, requests_per_unit: 0 } }
  - { key: free, rate_limit: { unlimited: true } }
`;

const listeners: HttpListener[] = [];

afterEach(async () => {
  await Promise.all(listeners.splice(0).map((listener) => listener.stop(500)));
  await closeDoors();
});

interface JsonDoor {
  readonly door: RateLimitDoor;
  readonly post: (body: unknown) => Promise<{ status: number; type: string; json: unknown }>;
  readonly url: string;
}

/** `/json` of the HTTP API, on the rules above. A body that is a text is sent as it is. */
async function openJson(headers: readonly "ietf"[] = []): Promise<JsonDoor> {
  const door = await openDoor(RULES, { headers });
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
  const url = `http://${listener.address}/json`;
  const post = async (body: unknown) => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const answer = await fetch(url, { method: "POST", body: text });
    const type = answer.headers.get("content-type") ?? "";
    return { status: answer.status, type, json: await answer.json() };
  };
  return { door, post, url };
}

const ask = (key: string, more: object = {}) => ({
  domain: "d",
  descriptors: [{ entries: [{ key, value: "1" }], ...more }],
});

describe("POST /json", () => {
  it("answers 200 and then 429, in protobuf's JSON", async () => {
    const { post } = await openJson();
    const first = await post(ask("a"));
    expect(first).toEqual({
      status: 200,
      type: "application/json",
      json: {
        overallCode: "OK",
        statuses: [
          {
            code: "OK",
            currentLimit: { requestsPerUnit: 2, unit: "MINUTE", name: "two" },
            limitRemaining: 1,
            durationUntilReset: "30s",
          },
        ],
      },
    });
    await post(ask("a"));
    expect(await post(ask("a"))).toMatchObject({
      status: 429,
      json: {
        overallCode: "OVER_LIMIT",
        statuses: [{ code: "OVER_LIMIT", durationUntilReset: "30s" }],
        responseHeadersToAdd: [{ key: "retry-after", value: "30" }],
      },
    });
  });

  it("leaves out what is 0 or not there", async () => {
    const { post } = await openJson();
    const { json } = await post({
      domain: "d",
      descriptors: ["none", "free", "x"].map((key) => ({ entries: [{ key, value: "" }] })),
    });
    expect(json).toEqual({
      overallCode: "OVER_LIMIT",
      statuses: [
        { code: "OVER_LIMIT", currentLimit: { unit: "MINUTE" } },
        { code: "OK", limitRemaining: 4_294_967_295 },
        { code: "OK" },
      ],
    });
  });

  it.each([
    ["names as in the .proto file", ask("a", { hits_addend: 2 })],
    ["numbers as texts", ask("a", { hitsAddend: "2" })],
    ["the request's addend as a text", { ...ask("a"), hits_addend: "2" }],
    ["null for what is absent", { ...ask("a", { limit: null, hitsAddend: null }), hitsAddend: 2 }],
    ["a unit by name", ask("a", { limit: { requestsPerUnit: 2, unit: "HOUR" }, hitsAddend: 2 })],
    ["a unit by number", ask("a", { limit: { requests_per_unit: "2", unit: 3 }, hitsAddend: 2 })],
    ["fields that nobody knows", { ...ask("a", { hitsAddend: 2, is_x: [1] }), future: {} }],
  ])("takes %s", async (_, body) => {
    const { post } = await openJson();
    expect((await post(body)).json).toEqual({
      overallCode: "OK",
      statuses: [expect.objectContaining({ code: "OK" })],
    });
    expect((await post(body)).status).toBe(429);
  });

  it("gives back where isNegativeHits says so", async () => {
    const { post } = await openJson();
    await post(ask("a", { hitsAddend: 2 }));
    expect((await post(ask("a"))).status).toBe(429);
    const { status } = await post(ask("a", { hitsAddend: 2, is_negative_hits: true }));
    expect(status).toBe(200);
    expect((await post(ask("a", { hitsAddend: 2 }))).status).toBe(200);
  });

  it.each<[string, unknown]>([
    ["no JSON", "{bad"],
    ["nothing", ""],
    ["a list", []],
    ["null", "null"],
    ["an empty domain", { ...ask("a"), domain: "" }],
    ["no descriptors", { domain: "d" }],
    ["descriptors that are no list", { domain: "d", descriptors: {} }],
    ["an entry that is none", { domain: "d", descriptors: [{ entries: ["a"] }] }],
    ["a value that is no text", { domain: "d", descriptors: [{ entries: [{ key: 1 }] }] }],
    ["half a character", '{"domain":"d","descriptors":[{"entries":[{"key":"\\ud800"}]}]}'],
    ["a negative addend", { ...ask("a"), hitsAddend: -1 }],
    ["a flag that is a text", ask("a", { isNegativeHits: "true" })],
    ["a fraction", { ...ask("a"), hitsAddend: 1.5 }],
    ["more than a uint32", { ...ask("a"), hitsAddend: 4_294_967_296 }],
    ["a number without end", '{"domain":"d","hitsAddend":1e999}'],
    ["a unit that is none", ask("a", { limit: { unit: "FORTNIGHT" } })],
    ["one field in both spellings", { ...ask("a"), hitsAddend: 1, hits_addend: 1 }],
  ])("answers 400 to %s, and spends nothing", async (_, body) => {
    const { post, door } = await openJson();
    const answer = await post(body);
    expect(answer).toMatchObject({
      status: 400,
      type: "application/problem+json",
      json: { status: 400 },
    });
    expect(JSON.stringify(answer.json)).not.toContain("rate-limit-json");
    expect(door.decider.decided).toBe(0);
    expect(door.faults).toEqual([]);
  });

  it("is immune to inherited names", async () => {
    const { post } = await openJson();
    const body = '{"domain":"d","descriptors":[{"entries":[{"key":"a"}],"__proto__":{"limit":1}}]}';
    expect((await post(body)).status).toBe(200);
  });

  it("answers 503 for a limit that is closed while the store is away", async () => {
    const { post, door } = await openJson();
    door.decider.alter = (decision) => ({
      ...decision,
      allowed: false,
      reason: "store_unavailable",
    });
    expect(await post(ask("a"))).toMatchObject({
      status: 503,
      json: { title: "Temporary Reduced Capacity" },
    });
  });

  it("answers 500 without a word of the fault, and goes on", async () => {
    const { post, door } = await openJson();
    door.decider.alter = () => {
      throw new Error("a bug");
    };
    const answer = await post(ask("a"));
    expect(answer.status).toBe(500);
    expect(JSON.stringify(answer.json)).not.toContain("a bug");
    door.decider.alter = undefined;
    door.decider.hold = () => Promise.reject(new Error("a later bug"));
    expect((await post(ask("a"))).status).toBe(500);
    door.decider.hold = undefined;
    expect((await post(ask("free"))).status).toBe(200);
  });

  it("is for POST only", async () => {
    const { url } = await openJson();
    const answer = await fetch(url);
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")).toBe("POST, OPTIONS");
    await answer.body?.cancel();
  });
});
