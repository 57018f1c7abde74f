import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { gathered, stateName } from "./bookkeeping.ts";
import { Traffic } from "./traffic.ts";

/** A token every two seconds: a burst that comes once more is no refill. */
const BURST = 30;
const RATE = 0.5;
const MODES = ["hybrid", "leased", "exact"] as const;
const LIMITS = MODES.map(
  (mode) => `  - { name: ${mode}, mode: ${mode}, rate: 30/m, burst: ${BURST} }`,
).join("\n");

let redis: RedisServer;
let admin: Redis;

beforeEach(async () => {
  redis = await startRedis({ args: ["--maxmemory", "6mb", "--maxmemory-policy", "allkeys-lru"] });
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

/** Traffic on a key of each limit, 40 checks a second of two pods, begun and drained. */
async function drained(pods: readonly Sidecar[]): Promise<Traffic[]> {
  const traffic = MODES.map((limit) => new Traffic(pods, { limit, keys: ["k"], perSecond: 20 }));
  await until("the buckets are empty", 10_000, async () =>
    traffic.every(({ allowed }) => allowed >= BURST),
  );
  await traffic[0]?.during(500);
  return traffic;
}

/** Keys of the limit that the pods found lost. */
async function lostKeys(pods: readonly Sidecar[], limit: string): Promise<number> {
  const label = `aliquot_lost_keys_total{limit="${limit}"}`;
  const counts = await Promise.all(pods.map((pod) => pod.metric(label)));
  return counts.reduce((sum, count) => sum + count, 0);
}

const linesOf = (pods: readonly Sidecar[], text: string): number[] =>
  pods.map(({ output }) => output.split("\n").filter((line) => line.includes(text)).length);

describe("O9 a Redis that drops keys which are in use", () => {
  it("deleted one by one: no mode gives a burst for it, and metrics and log tell", async () => {
    const pods = await startPods();
    expect(linesOf(pods, '"policy":"allkeys-lru"')).toEqual([1, 1]);
    const traffic = await drained(pods);
    for (const mode of MODES) expect(await lostKeys(pods, mode)).toBe(0);
    const before = traffic.map(({ allowed }) => allowed);
    const droppedAtMs = performance.now();
    for (const mode of MODES) expect(await admin.del(stateName(mode, "k"))).toBe(1);
    for (const mode of MODES) {
      await until(
        `the ${mode} key is missed`,
        10_000,
        async () => (await lostKeys(pods, mode)) > 0,
      );
    }
    await traffic[0]?.during(4_000);
    await Promise.all(traffic.map((each) => each.stop()));
    const refilled = RATE * ((performance.now() - droppedAtMs) / 1_000);
    for (const [i, { allowed, failures }] of traffic.entries()) {
      expect(failures).toEqual([]);
      // A tenth of the burst, the refill, and what a pod may have had in hand.
      const most = 0.1 * BURST + refilled + 4;
      expect(allowed - (before[i] as number), MODES[i]).toBeLessThanOrEqual(most);
      expect(await lostKeys(pods, MODES[i] as string)).toBe(1);
    }
    await until("the log says what it means", 3_000, async () =>
      linesOf(pods, "keys were gone from the store").some((lines) => lines === 1),
    );
    expect(Math.max(...linesOf(pods, "keys were gone from the store"))).toBe(1);
  }, 60_000);

  it("evicted by a flood of other keys: what is drained stays so", async () => {
    const pods = await startPods();
    const traffic = await drained(pods);
    const before = traffic.map(({ allowed }) => allowed);
    const startedAtMs = performance.now();
    const gone = new Set<string>();
    for (let round = 0; round < 40; round += 1) {
      const flood = admin.pipeline();
      for (let i = 0; i < 500; i += 1) flood.set(`other:${round}:${i}`, "x".repeat(1_000));
      await flood.exec();
      for (const mode of MODES) {
        if ((await admin.exists(stateName(mode, "k"))) === 0) gone.add(mode);
      }
      await traffic[0]?.during(50);
    }
    await traffic[0]?.during(1_000);
    await Promise.all(traffic.map((each) => each.stop()));
    expect(gone).toContain("exact"); // its denials are remembered, so that nobody asks for the key
    const refilled = RATE * ((performance.now() - startedAtMs) / 1_000);
    for (const [i, { allowed, failures }] of traffic.entries()) {
      expect(failures).toEqual([]);
      const times = await lostKeys(pods, MODES[i] as string);
      const most = (1 + times) * 0.1 * BURST + refilled + 4;
      expect(allowed - (before[i] as number), MODES[i]).toBeLessThanOrEqual(most);
    }
  }, 60_000);
});
