/** The HTTP side on the real engine, with a clock that the test moves. */
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { Limit } from "../../src/core/limit.ts";
import type { Decider } from "../../src/ports/decider.ts";
import { SoleEngine } from "../support/sole-engine.ts";
import { HOUR_US, limitOf } from "./exact-decider.ts";
import { type HttpClient, serve } from "./http-client.ts";

const limits = [
  limitOf("hourly", { tokens: 1, spanUs: HOUR_US, burst: 10 }),
  limitOf("wide", { tokens: 10, spanUs: 60_000_000, burst: 10 }),
  limitOf("narrow", { tokens: 3, spanUs: 60_000_000, burst: 3 }),
  limitOf("a", { tokens: 5, spanUs: 2_000_000, burst: 1 }),
  limitOf("b", { tokens: 10, spanUs: 22_000_000, burst: 1 }),
  limitOf("triple", { tokens: 1, spanUs: HOUR_US, burst: 3 }),
];

function deciderOf(sole: SoleEngine, configured: readonly Limit[]): Decider {
  return {
    limit: (name) => configured.find((limit) => limit.name === name),
    limits: () => configured,
    standing: (limit) => sole.engine.standing(limit),
    decide: (checks) => sole.decide(checks),
    report: (check) => sole.engine.report(sole.now, check),
  };
}

let sole: SoleEngine;
let client: HttpClient;

beforeEach(async () => {
  sole = new SoleEngine(limits);
  const served = await serve(deciderOf(sole, limits));
  client = served.client;
  onTestFinished(async () => {
    await served.stop();
    expect(served.faults).toEqual([]);
  });
});

async function remaining(limit: string, key: string, cost: number): Promise<unknown> {
  return (await client.check({ limit, key, cost })).json.remaining;
}

describe("O3 cost that is negative, zero or enormous, on the engine", () => {
  it("is refused or spends nothing", async () => {
    for (const cost of [-1, -1e9]) {
      expect((await client.check({ limit: "hourly", key: "n", cost })).status).toBe(400);
    }
    for (let i = 0; i < 1_000; i += 1) await client.check({ limit: "hourly", key: "n", cost: 0 });
    const large = await client.check({ limit: "hourly", key: "n", cost: 1e9 });
    expect(large.json).toMatchObject({ allowed: false, reason: "cost_exceeds_burst" });
    expect(await remaining("hourly", "n", 1)).toBe(9);
  });
});

describe("O17 Retry-After, on the engine", () => {
  it.each([
    { case: "(a)", limit: "a", afterUs: 10_000, seconds: "1", ms: 390 },
    { case: "(b)", limit: "b", afterUs: 100_000, seconds: "3", ms: 2_100 },
  ])("$case is $seconds s for a true wait of $ms ms", async ({ limit, afterUs, seconds, ms }) => {
    await client.check({ limit, key: "k" });
    sole.now += afterUs;
    const { status, headers, json } = await client.check({ limit, key: "k" }, "?deny_status=429");
    expect(status).toBe(429);
    expect(headers["retry-after"]).toBe(seconds);
    expect(Math.abs(Number(json.retry_after_ms) - ms)).toBeLessThanOrEqual(5);
  });

  it.each(["a", "b"])("(c) is long enough each time on %s", async (limit) => {
    await client.check({ limit, key: "k" });
    for (let i = 0; i < 100; i += 1) {
      const { headers } = await client.check({ limit, key: "k" });
      sole.now += Number(headers["retry-after"]) * 1_000_000;
      const again = await client.check({ limit, key: "k" });
      expect(again.json.allowed).toBe(true);
      expect(again.headers).not.toHaveProperty("retry-after");
    }
  });

  it.each(["a", "b"])("(c) is long enough in milliseconds as well on %s", async (limit) => {
    await client.check({ limit, key: "k" });
    for (let i = 0; i < 100; i += 1) {
      const { json } = await client.check({ limit, key: "k" });
      sole.now += Number(json.retry_after_ms) * 1_000;
      expect((await client.check({ limit, key: "k" })).json.allowed).toBe(true);
    }
  });
});

describe("O18 a denied check, on the engine", () => {
  it("spends nothing in any of its limits", async () => {
    const checks = ["wide", "narrow"].map((limit) => ({ limit, key: "k" }));
    const together: unknown[] = [];
    for (let i = 0; i < 5; i += 1) together.push((await client.check({ checks })).json.allowed);
    expect(together).toEqual([true, true, true, false, false]);
    const alone: unknown[] = [];
    for (let i = 0; i < 8; i += 1) {
      alone.push((await client.check({ limit: "wide", key: "k" })).json.allowed);
    }
    expect(alone).toEqual([...Array.from({ length: 7 }, () => true), false]);
  });
});

describe("O19 requests that are no check, on the engine", () => {
  it("spend nothing, and a field given twice counts with its last value", async () => {
    const path = "/v1/check?limit=hourly&key=k";
    await client.send("HEAD", path);
    await client.send("OPTIONS", path);
    await client.send("POST", "/v1/check", '{"limit":"hourly","key":"k","cost":1e999}');
    await client.send(
      "POST",
      "/v1/check",
      Buffer.from('{"limit":"hourly","key":"\xff"}', "latin1"),
    );
    expect((await client.get(path)).json.remaining).toBe(9);
    const twice = '{"limit":"hourly","key":"k","cost":1,"cost":5}';
    expect((await client.send("POST", "/v1/check", twice)).json.remaining).toBe(4);
  });
});

describe("O24 different identities, on the engine", () => {
  it.each([
    ["user=10.0.0.1", "ip=10.0.0.1"],
    ["a|b:c", "a:b|c"],
    ["a=b,c=", "a=b|c|"],
    ["x|y_z", "x_y|z"],
    ["v", "v\u0000"],
    ["*", "**"],
  ])("%j and %j have buckets of their own", async (first, second) => {
    await client.check({ limit: "triple", key: first, cost: 3 });
    expect(await remaining("triple", second, 1)).toBe(2);
  });

  it("have buckets of their own in each limit", async () => {
    await client.check({ limit: "triple", key: "k", cost: 3 });
    expect(await remaining("narrow", "k", 1)).toBe(2);
  });
});

describe("reports, on the engine", () => {
  it("drive a bucket into debt and out of it", async () => {
    const report = { limit: "hourly", key: "k" };
    const debt = await client.post("/v1/report", { ...report, cost: 12 });
    expect(debt.json.remaining).toBe(0);
    expect((await client.check({ limit: "hourly", key: "k" })).json).toMatchObject({
      allowed: false,
      retry_after_ms: 3 * 3_600_000,
    });
    const refund = await client.post("/v1/report", { ...report, cost: -7 });
    expect(refund.json.remaining).toBe(5);
  });
});
