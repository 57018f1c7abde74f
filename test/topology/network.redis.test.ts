import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { StalledProxy } from "../support/stalled-proxy.ts";
import { admitted, consumedOver, gathered, settled } from "./bookkeeping.ts";
import { Traffic } from "./traffic.ts";

const LIMITS = "  - { name: slow, rate: 1/d, burst: 100000 }";
const KEYS = Array.from({ length: 8 }, (_, i) => `key-${i}`);
/** A decision waits 10 ms at most; this part may be late because the machine is busy. */
const LATE_PART = 0.1;

let redis: RedisServer;
let admin: Redis;
let proxy: StalledProxy;
let pods: Sidecar[];

beforeEach(async () => {
  redis = await startRedis();
  admin = new Redis(redis.port, redis.host, { protocol: 2 });
  proxy = await StalledProxy.start(redis.port);
  pods = await Promise.all([1, 2].map(() => startSidecar({ limits: LIMITS, redisUrl: proxy.url })));
  await gathered(pods);
});

afterEach(async () => {
  await stopSidecars();
  await proxy.close();
  admin.disconnect();
  await redis.dispose();
});

const offer = (): Traffic => new Traffic(pods, { limit: "slow", keys: KEYS, perSecond: 60 });

const fallback = async (): Promise<number[]> =>
  Promise.all(pods.map((pod) => pod.metric("aliquot_fallback_active")));

/** No caller saw an error or waited, and the store has applied each admitted token once. */
async function expectUnharmed(traffic: Traffic): Promise<void> {
  await traffic.stop();
  await settled(pods);
  expect(traffic.failures).toEqual([]);
  expect(traffic.allowed).toBeGreaterThan(0);
  for (const pod of pods) expect(await pod.partWithin(0.05)).toBeGreaterThan(1 - LATE_PART);
  expect(await consumedOver(admin, "slow", KEYS)).toBe(await admitted(pods, "slow"));
  expect(await admitted(pods, "slow")).toBe(traffic.allowed);
  for (const pod of pods) expect(await pod.metric("aliquot_lost_tokens_total")).toBe(0);
}

describe("a network that fails between the pods and Redis", () => {
  it("drops all packets: the pods decide alone, and then counts agree", async () => {
    const traffic = offer();
    await traffic.during(1_000);
    proxy.stall();
    await until("the fallback is on", 4_000, async () =>
      (await fallback()).every((on) => on === 1),
    );
    await traffic.during(2_000);
    const { length } = traffic.answers;
    await traffic.during(500);
    expect(traffic.answers.length).toBeGreaterThan(length);
    proxy.flow();
    await until("the fallback is off", 5_000, async () =>
      (await fallback()).every((on) => on === 0),
    );
    await expectUnharmed(traffic);
  }, 40_000);

  it.each([
    { delayMs: 15, roundTrip: "30 ms" },
    { delayMs: 100, roundTrip: "200 ms, four times the command timeout" },
  ])(
    "takes $roundTrip: every call still counts once",
    async ({ delayMs }) => {
      const traffic = offer();
      await traffic.during(500);
      proxy.delayMs = delayMs;
      await traffic.during(4_000);
      await until("the pods are connected", 5_000, async () => {
        return (await fallback()).every((on) => on === 0);
      });
      const ok = await pods[0]?.metric('aliquot_reconcile_total{outcome="ok"}');
      await traffic.during(1_000);
      expect(await pods[0]?.metric('aliquot_reconcile_total{outcome="ok"}')).toBeGreaterThan(
        ok ?? 0,
      );
      await expectUnharmed(traffic);
    },
    40_000,
  );

  it("flaps every two seconds: the log stays short, and counts agree afterwards", async () => {
    const traffic = offer();
    for (let i = 0; i < 3; i += 1) {
      proxy.refuse();
      await traffic.during(2_000);
      proxy.accept();
      await traffic.during(2_000);
    }
    await expectUnharmed(traffic);
    for (const pod of pods) {
      const lines = pod.output.match(/"level":"(?:warn|error|info)"/g) ?? [];
      expect(lines.length).toBeLessThanOrEqual(8);
    }
  }, 40_000);
});
