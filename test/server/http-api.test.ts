import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ExactDecider, HOUR_US, limitOf } from "./exact-decider.ts";
import { type HttpClient, type Served, serve } from "./http-client.ts";

const RATELIMIT = "ratelimit";
const perHour = { tokens: 1, spanUs: HOUR_US, burst: 10 };

let decider: ExactDecider;
let served: Served;
let client: HttpClient;

beforeEach(async () => {
  decider = new ExactDecider([
    limitOf("hourly", perHour),
    limitOf("api-per-user", {
      tokens: 100,
      burst: 200,
      overrides: new Map([["tenant-é", limitOf("api-per-user", { tokens: 5, burst: 50 })]]),
    }),
  ]);
  served = await serve(decider);
  client = served.client;
});

afterEach(async () => {
  await served.stop();
  expect(served.faults).toEqual([]);
});

async function remaining(key: string): Promise<unknown> {
  return (await client.check({ limit: "hourly", key, cost: 0 })).json.remaining;
}

describe("GET /v1/check", () => {
  it("decides like POST with one check", async () => {
    const byQuery = await client.get("/v1/check?limit=hourly&key=u1&cost=3");
    expect(byQuery.status).toBe(200);
    const byBody = await client.check({ limit: "hourly", key: "u2", cost: 3 });
    expect(byQuery.text).toBe(byBody.text);
    expect(byQuery.headers[RATELIMIT]).toBe(byBody.headers[RATELIMIT]);
  });

  it("counts a key under the same bucket as POST does, whatever its characters", async () => {
    for (const key of ["a b", "ü/ö?&=", "100%", "\u0000", "💥"]) {
      const query = `limit=hourly&key=${encodeURIComponent(key)}`;
      expect((await client.get(`/v1/check?${query}`)).json.remaining).toBe(9);
      expect((await client.check({ limit: "hourly", key })).json.remaining).toBe(8);
    }
  });

  it("answers a denial with 429 when asked", async () => {
    const path = "/v1/check?limit=hourly&key=u1&cost=10&deny_status=429";
    expect((await client.get(path)).status).toBe(200);
    expect((await client.get(path)).status).toBe(429);
  });

  it.each([
    "",
    "limit=hourly",
    "key=u1",
    "limit=hourly&key=",
    "limit=hourly&key=u1&cost=",
    "limit=hourly&key=u1&cost=-1",
    "limit=hourly&key=u1&cost=1e3",
    "limit=hourly&key=u1&cost=0x10",
    "limit=hourly&key=u1&cost=1000000001",
    "limit=hourly&key=u1&deny_status=500",
    "limit=hourly&key=%ff",
    "limit=hourly&key=%ed%a0%80",
    "limit=hourly&key=%",
    `limit=hourly&key=${"k".repeat(257)}`,
  ])("refuses the query %j and spends nothing", async (query) => {
    const { status, headers } = await client.get(`/v1/check?${query}`);
    expect(status).toBe(400);
    expect(headers["content-type"]).toBe("application/problem+json");
    expect(await remaining("u1")).toBe(10);
  });
});

describe("POST /v1/check/batch", () => {
  it("answers independent requests in order, each with its own error", async () => {
    const { status, json } = await client.post("/v1/check/batch", {
      requests: [
        { limit: "hourly", key: "a", cost: 10 },
        { limit: "hourly", key: "a" },
        { limit: "hourl", key: "a" },
        7,
        { checks: [{ limit: "hourly", key: "b" }] },
      ],
    });
    expect(status).toBe(200);
    expect(json.results).toMatchObject([
      { allowed: true, remaining: 0 },
      { allowed: false },
      { error: { status: 404, title: "Not Found" } },
      { error: { status: 400, detail: "the body must be a JSON object, got 7" } },
      { allowed: true, results: [{ remaining: 9 }] },
    ]);
  });

  it("takes 1000 requests and refuses 0 and 1001 of them without spending", async () => {
    const requests = Array.from({ length: 1_000 }, () => ({ limit: "hourly", key: "k", cost: 0 }));
    const full = await client.post("/v1/check/batch", { requests });
    expect(full.json.results).toHaveLength(1_000);
    const over = [...requests, { limit: "hourly", key: "k" }];
    expect((await client.post("/v1/check/batch", { requests: over })).status).toBe(400);
    expect((await client.post("/v1/check/batch", { requests: [] })).status).toBe(400);
    expect(await remaining("k")).toBe(10);
  });

  it("waits for the requests that are held and keeps the order", async () => {
    const waits = [Promise.resolve(), undefined, Promise.resolve()];
    decider.hold = () => waits.shift() as Promise<void>;
    const requests = [1, 2, 3].map((cost) => ({ limit: "hourly", key: `${cost}`, cost }));
    const { json } = await client.post("/v1/check/batch", { requests });
    expect(json.results).toMatchObject([{ remaining: 9 }, { remaining: 8 }, { remaining: 7 }]);
  });
});

describe("POST /v1/report", () => {
  it("debits without asking, below empty if need be, and refunds", async () => {
    const debt = await client.post("/v1/report", { limit: "hourly", key: "k", cost: 15 });
    expect(debt.status).toBe(200);
    expect(debt.json).toMatchObject({ remaining: 0, reset_after_ms: 15 * 3_600_000 });
    const refunded = await client.post("/v1/report", { limit: "hourly", key: "k", cost: -8 });
    expect(refunded.json).toMatchObject({ remaining: 3 });
  });

  it.each([-1e9 - 1, 1e9 + 1, 0.5, "1"])("refuses a cost of %j", async (cost) => {
    expect((await client.post("/v1/report", { limit: "hourly", key: "k", cost })).status).toBe(400);
    expect(await remaining("k")).toBe(10);
  });
});

describe("GET /v1/limits", () => {
  it("lists the limits in force with their exact rates", async () => {
    const { json } = await client.get("/v1/limits");
    expect(json.limits).toMatchObject([
      {
        name: "hourly",
        refill: { tokens: 1, period_us: 3_600_000_000 },
        burst: 10,
        mode: "hybrid",
        fallback: { policy: "local", margin: 0.9, max_pods: 20 },
        shadow: false,
        overrides: [],
      },
      {
        name: "api-per-user",
        rate_per_second: 100,
        reconcile_interval_ms: 100,
        overrides: [{ key: "tenant-é", rate_per_second: 5, burst: 50 }],
      },
    ]);
  });

  it("shows a single limit under its name", async () => {
    const list = (await client.get("/v1/limits")).json.limits;
    expect((await client.get("/v1/limits/hourly")).json).toEqual((list as unknown[])[0]);
  });

  it.each(["/v1/limits/houry", "/v1/limits/"])("answers %s with 404 and a name", async (path) => {
    const { status, json } = await client.get(path);
    expect(status).toBe(404);
    expect(json.detail).toContain('the closest one is "hourly"');
  });

  it("answers HEAD like GET, without the body", async () => {
    const { status, headers, text } = await client.send("HEAD", "/v1/limits");
    expect(status).toBe(200);
    expect(Number(headers["content-length"])).toBeGreaterThan(100);
    expect(text).toBe("");
  });
});

describe("a limit that is not configured", () => {
  it.each([
    ["api-per-usr", "api-per-user"],
    ["HOURLY", "hourly"],
    ["__proto__", "hourly"],
    ["", "hourly"],
    ["api-per-user".repeat(500), "api-per-user"],
  ])("named %j is answered 404 with the closest name %s", async (limit, closest) => {
    const { status, json } = await client.check({ limit, key: "k" });
    expect(status).toBe(404);
    expect(json.detail).toContain(`the closest one is "${closest}"`);
    expect(String(json.detail).length).toBeLessThan(200);
  });
});

describe("paths and methods", () => {
  it.each(["/", "/v1/check/", "/v1/checks", "/v1/forward/@api", "/json", "/metrics", "/v1//check"])(
    "answers %s with a 404 problem",
    async (path) => {
      const { status, headers } = await client.send("POST", path, "{}");
      expect(status).toBe(404);
      expect(headers["content-type"]).toBe("application/problem+json");
    },
  );

  it.each([
    ["PUT", "/v1/check", "POST, GET, OPTIONS"],
    ["DELETE", "/v1/limits", "GET, HEAD, OPTIONS"],
    ["GET", "/v1/check/batch", "POST, OPTIONS"],
    ["GET", "/v1/report", "POST, OPTIONS"],
    ["POST", "/openapi.json", "GET, HEAD, OPTIONS"],
  ])("answers %s %s with 405 and the methods there are", async (method, path, allow) => {
    const { status, headers } = await client.send(method, path, "{}");
    expect(status).toBe(405);
    expect(headers.allow).toBe(allow);
  });

  it("takes the absolute form of a target", async () => {
    const { status } = await client.get("http://sidecar:8790/v1/check?limit=hourly&key=u1");
    expect(status).toBe(200);
  });
});

describe("a check that meets a bug", () => {
  it("is answered 500 without a trace of it, and the bug is reported", async () => {
    const bug = new Error("secret detail");
    decider.hold = () => Promise.reject(bug);
    const held = await client.check({ limit: "hourly", key: "k" });
    decider.hold = () => {
      throw bug;
    };
    const sync = await client.check({ limit: "hourly", key: "k" });
    const byQuery = await client.get("/v1/check?limit=hourly&key=k");
    for (const { status, text } of [held, sync, byQuery]) {
      expect(status).toBe(500);
      expect(text).not.toMatch(/secret|at .*\.ts/);
    }
    expect(served.faults.splice(0)).toEqual([bug, bug, bug]);
  });
});

describe("the duration of checks", () => {
  it("is told once per check and batch, and never for a bad request or a report", async () => {
    await served.stop();
    const durations: number[] = [];
    served = await serve(decider, { observeUs: (us) => durations.push(us) });
    client = served.client;
    const check = { limit: "hourly", key: "k" };
    await client.check(check);
    await client.get("/v1/check?limit=hourly&key=k");
    await client.post("/v1/check/batch", { requests: [check, check] });
    await client.check({ limit: "hourly" });
    await client.post("/v1/report", check);
    expect(durations).toHaveLength(3);
    for (const us of durations) expect(us).toBeGreaterThan(0);
  });
});
