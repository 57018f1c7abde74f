import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ExactDecider, HOUR_US, limitOf } from "./exact-decider.ts";
import { type HttpClient, type Served, serve } from "./http-client.ts";

const perHour = { tokens: 1, spanUs: HOUR_US, burst: 10 };

let decider: ExactDecider;
let served: Served;
let client: HttpClient;

beforeEach(async () => {
  decider = new ExactDecider([
    limitOf("hourly", perHour),
    limitOf("per-second", { tokens: 100, burst: 200 }),
    limitOf("slow", { tokens: 10, spanUs: 22_000_000, burst: 1 }),
    limitOf("shadowed", { ...perHour, burst: 1, shadow: true }),
    limitOf("fussy", perHour),
    limitOf("tenants", {
      ...perHour,
      overrides: new Map([["big", limitOf("tenants", { burst: 1_000 })]]),
    }),
  ]);
  served = await serve(decider);
  client = served.client;
});

afterEach(async () => {
  await served.stop();
  expect(served.faults).toEqual([]);
});

/** What a peek says is left; spends nothing. */
async function remaining(limit: string, key: string): Promise<unknown> {
  return (await client.check({ limit, key, cost: 0 })).json.remaining;
}

describe("POST /v1/check", () => {
  it("answers an admission with every field of a decision", async () => {
    decider.nowUs = 0;
    const { status, json, headers } = await client.check({ limit: "per-second", key: "u1" });
    expect(status).toBe(200);
    expect(json).toEqual({
      allowed: true,
      limit: "per-second",
      remaining: 199,
      reset_after_ms: 10,
      retry_after_ms: 0,
      source: "local",
      degraded: false,
      shadow: false,
    });
    expect(headers["content-type"]).toBe("application/json");
  });

  it("answers a denial with 200, and with 429 and the same body when asked", async () => {
    await client.check({ limit: "hourly", key: "u1", cost: 10 });
    const plain = await client.check({ limit: "hourly", key: "u1" });
    const asked = await client.check({ limit: "hourly", key: "u1" }, "?deny_status=429");
    expect([plain.status, asked.status]).toEqual([200, 429]);
    expect(asked.text).toBe(plain.text);
    expect(plain.json).toMatchObject({
      allowed: false,
      remaining: 0,
      retry_after_ms: 3_600_000,
      reason: "limit_exceeded",
    });
    for (const name of ["ratelimit", "ratelimit-policy", "retry-after"]) {
      expect(asked.headers[name]).toBe(plain.headers[name]);
    }
  });

  it("refuses any other status for denials and spends nothing", async () => {
    const { status, json } = await client.check({ limit: "hourly", key: "u1" }, "?deny_status=503");
    expect(status).toBe(400);
    expect(json.detail).toContain("503");
    expect(await remaining("hourly", "u1")).toBe(10);
  });

  it("leaves out the wait when the cost is above the burst", async () => {
    const { json, headers } = await client.check({ limit: "hourly", key: "u1", cost: 11 });
    expect(json).toMatchObject({ allowed: false, reason: "cost_exceeds_burst" });
    expect(json).not.toHaveProperty("retry_after_ms");
    expect(headers).not.toHaveProperty("retry-after");
  });

  it("says what a shadow limit would have done and lets the check pass", async () => {
    await client.check({ limit: "shadowed", key: "u1" });
    const { json, headers } = await client.check({ limit: "shadowed", key: "u1" });
    expect(json).toMatchObject({
      allowed: true,
      shadow: true,
      would_deny: true,
      retry_after_ms: 0,
      reason: "limit_exceeded",
    });
    expect(headers).not.toHaveProperty("retry-after");
  });

  it("answers with the state of an override for its key", async () => {
    const { json, headers } = await client.check({ limit: "tenants", key: "big" });
    expect(json).toMatchObject({ limit: "tenants", remaining: 999 });
    expect(headers["ratelimit-policy"]).toBe('"tenants";q=1000;w=1000');
  });
});

describe("a check of several limits", () => {
  const pair = [
    { limit: "hourly", key: "u1" },
    { limit: "per-second", key: "u1" },
  ];

  it("speaks for the tightest and lists one result per check in order", async () => {
    const { json } = await client.check({ checks: pair });
    expect(json).toMatchObject({ allowed: true, limit: "hourly", remaining: 9 });
    expect(json.results).toMatchObject([
      { limit: "hourly", remaining: 9 },
      { limit: "per-second", remaining: 199 },
    ]);
  });

  it.each([0, 17])("refuses a list of %d checks", async (length) => {
    const checks = Array.from({ length }, () => pair[0]);
    expect((await client.check({ checks })).status).toBe(400);
  });

  it("takes 16 checks", async () => {
    const checks = Array.from({ length: 16 }, (_, index) => ({ limit: "hourly", key: `${index}` }));
    const { status, json } = await client.check({ checks });
    expect(status).toBe(200);
    expect(json.results).toHaveLength(16);
  });

  it("names the place of a bad check and spends nothing for the others", async () => {
    const { status, json } = await client.check({ checks: [pair[0], { limit: "hourly", key: 7 }] });
    expect(status).toBe(400);
    expect(json.detail).toBe("checks[1].key must be a string, got 7");
    expect(await remaining("hourly", "u1")).toBe(10);
  });

  it("refuses a body that has both forms", async () => {
    const { status } = await client.check({ checks: pair, limit: "hourly", key: "u1" });
    expect(status).toBe(400);
    expect(await remaining("hourly", "u1")).toBe(10);
  });
});

describe("O18 a denied check spends nothing in any of its limits", () => {
  it("charges the wide limit only for the checks that the narrow one admits", async () => {
    await served.stop();
    decider = new ExactDecider([
      limitOf("wide", { tokens: 10, spanUs: 60_000_000, burst: 10 }),
      limitOf("narrow", { tokens: 3, spanUs: 60_000_000, burst: 3 }),
    ]);
    served = await serve(decider);
    client = served.client;
    const both = ["wide", "narrow"].map((limit) => ({ limit, key: "k" }));
    const verdicts: unknown[] = [];
    for (let i = 0; i < 5; i += 1) {
      const { json } = await client.check({ checks: both });
      verdicts.push(json.allowed);
      expect(json.results).toMatchObject([{ limit: "wide" }, { limit: "narrow" }]);
    }
    expect(verdicts).toEqual([true, true, true, false, false]);
    const alone: unknown[] = [];
    for (let i = 0; i < 8; i += 1) {
      alone.push((await client.check({ limit: "wide", key: "k" })).json.allowed);
    }
    expect(alone).toEqual([true, true, true, true, true, true, true, false]);
  });
});

describe("O3 cost that is negative, zero or enormous", () => {
  it.each([-1, -1e9, 1e9 + 1, 1.5, 1e300, "1", null, true, [], {}])(
    "refuses a cost of %j and spends nothing",
    async (cost) => {
      const { status, json } = await client.check({ limit: "hourly", key: "k", cost });
      expect(status).toBe(400);
      expect(json.detail).toContain("cost must be a whole number from 0 to 1000000000");
      expect((await client.check({ limit: "hourly", key: "k" })).json.remaining).toBe(9);
    },
  );

  it("spends nothing for a cost of 0, a thousand times", async () => {
    for (let i = 0; i < 1_000; i += 1) await remaining("hourly", "k");
    expect((await client.check({ limit: "hourly", key: "k", cost: 1 })).json.remaining).toBe(9);
  });

  it("takes the largest cost and denies it", async () => {
    const { status, json } = await client.check({ limit: "hourly", key: "k", cost: 1e9 });
    expect(status).toBe(200);
    expect(json.reason).toBe("cost_exceeds_burst");
  });
});

describe("O17 (d) the wait that is advertised", () => {
  it.each([
    { name: "390 ms", limit: "per-second", drain: 200, cost: 39, seconds: "1", ms: 390 },
    { name: "2.2 s", limit: "slow", drain: 1, cost: 1, seconds: "3", ms: 2_200 },
    { name: "an hour", limit: "hourly", drain: 10, cost: 1, seconds: "3600", ms: 3_600_000 },
  ])("is whole seconds rounded up for a true wait of $name", async (row) => {
    const allowed = await client.check({ limit: row.limit, key: "k", cost: row.drain });
    expect(allowed.headers).not.toHaveProperty("retry-after");
    const denied = await client.check(
      { limit: row.limit, key: "k", cost: row.cost },
      "?deny_status=429",
    );
    expect(denied.status).toBe(429);
    expect(denied.headers["retry-after"]).toBe(row.seconds);
    expect(denied.json.retry_after_ms).toBe(row.ms);
  });

  it("is at least 1 for the shortest wait", async () => {
    await client.check({ limit: "per-second", key: "k", cost: 200 });
    decider.nowUs += 9_999;
    const { headers, json } = await client.check({ limit: "per-second", key: "k" });
    expect(headers["retry-after"]).toBe("1");
    expect(json.retry_after_ms).toBe(1);
  });
});

describe("a limit that is closed while the store is away", () => {
  const closedCheck = { limit: "fussy", key: "k" };

  beforeEach(() => {
    decider.closed.add("fussy");
  });

  it("is answered 503 with the registered problem type", async () => {
    const { status, json, headers } = await client.check(closedCheck);
    expect(status).toBe(503);
    expect(headers["content-type"]).toBe("application/problem+json");
    expect(headers["retry-after"]).toBe("1");
    expect(json).toMatchObject({
      type: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
      status: 503,
      "violated-policies": ["fussy"],
    });
  });

  it("gives way to a denial that is certain", async () => {
    await client.check({ limit: "hourly", key: "k", cost: 10 });
    const { status, json } = await client.check({
      checks: [closedCheck, { limit: "hourly", key: "k" }],
    });
    expect(status).toBe(200);
    expect(json).toMatchObject({ allowed: false, limit: "hourly", reason: "limit_exceeded" });
  });

  it("is an error of its own in a batch", async () => {
    const { status, json } = await client.post("/v1/check/batch", {
      requests: [closedCheck, { limit: "hourly", key: "k" }],
    });
    expect(status).toBe(200);
    expect(json.results).toMatchObject([{ error: { status: 503 } }, { allowed: true }]);
  });
});
