import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";
import { admitted, consumedOver, gathered, settled } from "./bookkeeping.ts";
import { Traffic } from "./traffic.ts";

const LIMITS = "  - { name: slow, rate: 1/d, burst: 100000 }";
const KEYS = Array.from({ length: 8 }, (_, i) => `key-${i}`);

let redis: RedisServer;
let admin: Redis;
let pods: Sidecar[];
let traffic: Traffic;

beforeEach(async () => {
  // Timing of the server that makes it busy, or loading, for as long as a test needs.
  const allowed = ["--enable-debug-command", "yes", "--enable-protected-configs", "yes"];
  const args = ["--busy-reply-threshold", "50", ...allowed];
  redis = await startRedis({ args });
  admin = new Redis(redis.port, redis.host, { protocol: 2, enableReadyCheck: false });
  pods = await Promise.all([1, 2].map(() => startSidecar({ limits: LIMITS, redisUrl: redis.url })));
  await gathered(pods);
  traffic = new Traffic(pods, { limit: "slow", keys: KEYS, perSecond: 60 });
  await traffic.during(1_000);
});

afterEach(async () => {
  await traffic.stop();
  await stopSidecars();
  admin.disconnect();
  await redis.dispose();
});

/** Resolves when both logs hold the words. */
async function said(words: RegExp): Promise<void> {
  // All pods at once: the trouble may be over by the time the first has been looked at.
  await Promise.all(
    pods.map(async (pod) => {
      await until("the fallback is active", 8_000, async () => {
        return (await pod.metric("aliquot_fallback_active")) === 1;
      });
      await until(`the log holds ${words}`, 8_000, () => words.test(pod.output));
    }),
  );
}

/** No caller saw an error, and the store has applied each admitted token once. */
async function expectUnharmed(): Promise<void> {
  await traffic.stop();
  await settled(pods);
  expect(traffic.failures).toEqual([]);
  expect(await consumedOver(admin, "slow", KEYS)).toBe(await admitted(pods, "slow"));
  expect(await admitted(pods, "slow")).toBe(traffic.allowed);
}

describe("a Redis that answers with an error", () => {
  it("BUSY with another client's script: the pods decide alone until it ends", async () => {
    const loop = admin.eval("while true do end", 0).catch(() => {});
    await said(/BUSY|no answer|within \d+ ms/);
    const killer = new Redis(redis.port, redis.host, { protocol: 2, enableReadyCheck: false });
    await killer.script("KILL");
    killer.disconnect();
    await loop;
    await expectUnharmed();
  }, 40_000);

  it("OOM without eviction: nothing is applied in part", async () => {
    await admin.config("SET", "maxmemory", "1");
    await said(/OOM/);
    await admin.config("SET", "maxmemory", "0");
    await expectUnharmed();
  }, 40_000);

  it("LOADING its data: the log says so while it lasts", async () => {
    await admin.call("DEBUG", "POPULATE", "500", "filler");
    await admin.config("SET", "key-load-delay", "10000"); // us
    await admin.config("SET", "loading-process-events-interval-bytes", "1024");
    const loading = admin.call("DEBUG", "RELOAD");
    await said(/LOADING|no answer|within \d+ ms/);
    await loading;
    await expectUnharmed();
  }, 40_000);

  it("NOSCRIPT after a flush of the scripts: nobody notices", async () => {
    for (let i = 0; i < 5; i += 1) {
      await admin.script("FLUSH");
      await traffic.during(200);
    }
    await expectUnharmed();
    for (const pod of pods) {
      expect(await pod.sum("aliquot_reconcile_total", 'outcome="refused"')).toBe(0);
      expect(pod.output).not.toContain('"warn"');
    }
  }, 40_000);

  it("MISCONF because it cannot save: the log says so", async () => {
    await admin.config("SET", "dir", "/proc");
    await admin.config("SET", "save", "1 1");
    await said(/MISCONF/);
    await admin.config("SET", "save", "");
    await admin.config("SET", "stop-writes-on-bgsave-error", "no");
    await expectUnharmed();
  }, 40_000);
});
