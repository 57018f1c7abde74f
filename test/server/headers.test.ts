import { describe, expect, it, onTestFinished } from "vitest";
import { createRateHeaders } from "../../src/server/headers.ts";
import type { HttpApiOptions } from "../../src/server/http-api.ts";
import { wholeSecondsToFill } from "../../src/server/limit-text.ts";
import { ExactDecider, HOUR_US, limitOf } from "./exact-decider.ts";
import { type Served, serve } from "./http-client.ts";
import { readRateLimit, readRateLimitPolicy } from "./structured-fields.ts";

let served: Served;

async function start(decider: ExactDecider, options: Partial<HttpApiOptions> = {}): Promise<void> {
  served = await serve(decider, options);
  onTestFinished(() => served.stop());
}

const limits = [
  limitOf("hourly", { tokens: 1, spanUs: HOUR_US, burst: 10 }),
  limitOf("quick", { tokens: 100, burst: 250 }),
  limitOf("steady", { tokens: 100, burst: 200 }),
];

describe("RateLimit-Policy", () => {
  it("states the burst and the whole seconds in which it refills", async () => {
    await start(new ExactDecider(limits));
    const { headers } = await served.client.check({ limit: "steady", key: "k" });
    expect(readRateLimitPolicy(headers)).toEqual([{ name: "steady", q: 200, w: 2 }]);
  });

  it("leaves the seconds out when they are not whole", async () => {
    await start(new ExactDecider(limits));
    const { headers } = await served.client.check({ limit: "quick", key: "k" });
    expect(readRateLimitPolicy(headers)).toEqual([{ name: "quick", q: 250 }]);
  });

  it("lists each limit of a check once, in order", async () => {
    await start(new ExactDecider(limits));
    const checks = ["steady", "hourly", "steady"].map((limit, i) => ({ limit, key: `${i}` }));
    const { headers } = await served.client.check({ checks });
    expect(readRateLimitPolicy(headers)).toEqual([
      { name: "steady", q: 200, w: 2 },
      { name: "hourly", q: 10, w: 36_000 },
    ]);
    expect(readRateLimit(headers)).toEqual([{ name: "hourly", r: 9, t: 3_600 }]);
  });

  it.each([
    { tokens: 100, spanUs: 1_000_000, burst: 200, seconds: 2 },
    { tokens: 10, spanUs: 13_000_000, burst: 1, seconds: undefined },
    { tokens: 10, spanUs: 13_000_000, burst: 10, seconds: 13 },
    { tokens: 1_000_000, spanUs: 1_000_000, burst: 1, seconds: undefined },
    { tokens: 1, spanUs: 86_400_000_000, burst: 365, seconds: 365 * 86_400 },
    { tokens: 7, spanUs: 900_000_000, burst: 7_000_000, seconds: 900_000_000 },
  ])("fills $burst at $tokens per $spanUs us in $seconds s", ({ seconds, ...spec }) => {
    expect(wholeSecondsToFill(limitOf("any", spec))).toBe(seconds);
  });
});

describe("RateLimit", () => {
  it("tells a caller with tokens left when the bucket is full", async () => {
    await start(new ExactDecider(limits));
    const { headers } = await served.client.check({ limit: "hourly", key: "k", cost: 4 });
    expect(readRateLimit(headers)).toEqual([{ name: "hourly", r: 6, t: 4 * 3_600 }]);
  });

  it("tells a caller that took the last token when the next one comes", async () => {
    await start(new ExactDecider(limits));
    const { headers } = await served.client.check({ limit: "hourly", key: "k", cost: 10 });
    expect(readRateLimit(headers)).toEqual([{ name: "hourly", r: 0, t: 3_600 }]);
  });

  it("tells a denied caller the same wait as Retry-After", async () => {
    await start(new ExactDecider(limits));
    await served.client.check({ limit: "hourly", key: "k", cost: 8 });
    const { headers } = await served.client.check({ limit: "hourly", key: "k", cost: 5 });
    expect(headers["retry-after"]).toBe(String(3 * 3_600));
    expect(readRateLimit(headers)).toEqual([{ name: "hourly", r: 2, t: 3 * 3_600 }]);
  });

  it("names no time when waiting cannot help", async () => {
    await start(new ExactDecider(limits));
    const { headers } = await served.client.check({ limit: "hourly", key: "k", cost: 11 });
    expect(readRateLimit(headers)).toEqual([{ name: "hourly", r: 10 }]);
  });

  it("comes with answers of 503 as well, and with GET", async () => {
    const decider = new ExactDecider(limits);
    decider.closed.add("hourly");
    await start(decider);
    const { status, headers } = await served.client.get("/v1/check?limit=hourly&key=k");
    expect(status).toBe(503);
    expect(readRateLimit(headers)).toMatchObject([{ name: "hourly" }]);
    expect(readRateLimitPolicy(headers)).toHaveLength(1);
  });
});

describe("the older header shapes", () => {
  const wallMs = (): number => 1_700_000_000_400;
  const reset = { delta: "14400", epoch: "1700014401" };

  it.each([
    { shape: "x-delta", limit: "10", resets: reset.delta },
    { shape: "x-epoch", limit: "10", resets: reset.epoch },
    { shape: "draft-03", limit: "10, 10;w=36000", resets: reset.delta },
  ] as const)("include $shape", async ({ shape, limit, resets }) => {
    await start(new ExactDecider(limits), { headers: [shape], wallMs });
    const { headers } = await served.client.check({ limit: "hourly", key: "k", cost: 4 });
    expect(headers["x-ratelimit-limit"]).toBe(limit);
    expect(headers["x-ratelimit-remaining"]).toBe("6");
    expect(headers["x-ratelimit-reset"]).toBe(resets);
    expect(headers).not.toHaveProperty("ratelimit");
    const denied = await served.client.check({ limit: "hourly", key: "k", cost: 7 });
    expect(denied.headers["retry-after"]).toBe("3600");
  });

  it("can come beside the draft's own", async () => {
    await start(new ExactDecider(limits), { headers: ["x-delta", "ietf"] });
    const { headers } = await served.client.check({ limit: "hourly", key: "k" });
    expect(headers["x-ratelimit-limit"]).toBe("10");
    expect(readRateLimit(headers)).toHaveLength(1);
  });

  it("cannot be combined where they share names", () => {
    expect(() => createRateHeaders(["x-delta", "ietf", "x-epoch"], wallMs)).toThrow(
      "x-delta and x-epoch",
    );
  });
});
