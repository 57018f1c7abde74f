import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { consumedOver, gathered, settled } from "./bookkeeping.ts";
import { Traffic } from "./traffic.ts";

const LIMITS = [
  "  - { name: api, rate: 5/s, burst: 5 }",
  "  - { name: other, rate: 1/d, burst: 1000 }",
].join("\n");

let redis: RedisServer;
let admin: Redis;

beforeEach(async () => {
  redis = await startRedis();
  admin = new Redis(redis.port, redis.host, { protocol: 2 });
});

afterEach(async () => {
  await stopSidecars();
  admin.disconnect();
  await redis.dispose();
});

async function startPods(): Promise<Sidecar[]> {
  const pods = await Promise.all(
    ["pod-a", "pod-b"].map((podId) => startSidecar({ limits: LIMITS, redisUrl: redis.url, podId })),
  );
  await gathered(pods);
  return pods;
}

/** The names that pods use for a while of ordinary traffic; pods have gone again afterwards. */
async function namesInUse(): Promise<string[]> {
  const pods = await startPods();
  for (const pod of pods) await pod.check("api", "k");
  await settled(pods);
  const names = await admin.keys("*");
  await Promise.all(pods.map((pod) => pod.terminate()));
  return names;
}

/** 20 checks a second on a limit of 5/s with burst 5, with whatever `meanwhile` does. */
async function run(
  pods: readonly Sidecar[],
  forMs: number,
  meanwhile: (traffic: Traffic) => Promise<void>,
): Promise<void> {
  const traffic = new Traffic(pods, { limit: "api", keys: ["k"], perSecond: 10 });
  const others = new Traffic(pods, { limit: "other", keys: ["x", "y"], perSecond: 2 });
  await meanwhile(traffic);
  await traffic.during(Math.max(0, forMs - traffic.atMs));
  await Promise.all([traffic.stop(), others.stop()]);
  await settled(pods);
  expect([...traffic.failures, ...others.failures]).toEqual([]);
  const ideal = 5 + 5 * (Math.max(forMs, traffic.atMs) / 1_000);
  expect(traffic.allowed).toBeLessThanOrEqual(ideal + 2);
  expect(traffic.allowed).toBeGreaterThan(0.5 * ideal); // a slow answer of the store denies
  expect(others.allowed).toBeGreaterThan(0.7 * others.answers.length); // so it does here
  for (const pod of pods) {
    expect(pod.alive).toBe(true);
    expect((pod.output.match(/"level":"(?:warn|error)"/g) ?? []).length).toBeLessThanOrEqual(20);
    expect(await pod.metric("aliquot_store_up")).toBe(1);
  }
}

describe("O9 what is stored under our names is not ours", () => {
  const bad = {
    "a string": (name: string) => admin.set(name, "abc"),
    "a list": (name: string) => admin.rpush(name, "a", "b"),
    "a hash": (name: string) => admin.hset(name, "consumed", "nan"),
  };

  it.each(Object.keys(bad) as (keyof typeof bad)[])(
    "%s in place of everything, from the start: the limit holds, and it heals",
    async (kind) => {
      const names = await namesInUse();
      const startedAtMs = performance.now();
      await admin.flushall();
      for (const name of names) await bad[kind](name);
      const pods = await startPods();
      const damaged = async (): Promise<number> => {
        const counts = pods.map((pod) => pod.sum("aliquot_damaged_keys_total"));
        return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
      };
      expect(await damaged()).toBe(0);
      await run(pods, 8_000, async (traffic) => {
        // Five reconcile periods, and what a busy machine adds.
        await until("the damaged key is told of", 1_500, async () => (await damaged()) >= 1);
        await traffic.during(500);
        for (const name of names.filter((each) => !each.includes(":seq:"))) {
          expect(await admin.type(name)).toBe(name.endsWith(":pods") ? "zset" : "string");
        }
      });
      // Of the key that is asked for; it was replaced once, and nothing was damaged since.
      expect(await damaged()).toBe(1);
      const seconds = (performance.now() - startedAtMs) / 1_000;
      for (const pod of pods) {
        const told = pod.output.match(/"level":"(?:warn|error)"/g) ?? [];
        expect(told.length).toBeLessThanOrEqual(seconds);
      }
    },
    60_000,
  );

  it("and all of it vanishes in the middle: no free burst", async () => {
    const pods = await startPods();
    await run(pods, 20_000, async (traffic) => {
      await traffic.during(10_000);
      await admin.flushall();
    });
    expect(await consumedOver(admin, "other", ["x", "y"])).toBeGreaterThan(0);
  }, 60_000);
});
