/**
 * What the fleet costs Redis: microseconds of its one thread per call and key, and bytes per key.
 * It prints the figures of the sizing table in docs/operations.md and holds them against bounds
 * that only a change of the scripts could break.
 */
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BATCH_ENTRIES_MAX } from "../../src/core/exchange.ts";
import { SystemClock } from "../../src/runtime/system-clock.ts";
import { LANES } from "../store/both-stores.ts";
import { accessTo, connected } from "../store/connected.ts";
import { batchOf, keysOfLane, limitOf, SECOND } from "../store/pod.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";

const CALLS = 400;
const LIMIT = limitOf({ name: "api-per-user" });

let redis: RedisServer;
let admin: Redis;

beforeEach(async () => {
  redis = await startRedis();
  admin = new Redis(redis.port, redis.host, { protocol: 2 });
});

afterEach(async () => {
  admin.disconnect();
  await redis.dispose();
});

const podOf = (podId: string) =>
  connected({
    ...accessTo(redis),
    fleet: "cost",
    podId,
    incarnation: "a1",
    clock: new SystemClock(),
  });

/** Microseconds of the server per script call since the last reset. */
async function usPerCall(): Promise<number> {
  const stats = await admin.info("commandstats");
  let [calls, us] = [0, 0];
  for (const match of stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+),usec=(\d+)/g)) {
    calls += Number(match[1]);
    us += Number(match[2]);
  }
  return us / calls;
}

describe("what the fleet costs Redis", () => {
  it("is a fixed part per call and a small part per key", async () => {
    const pod = await podOf("pod-1");
    const costs: { keys: number; us: number }[] = [];
    let seq = 0;
    for (const keys of [1, 16, BATCH_ENTRIES_MAX]) {
      const items = keysOfLane(0, LANES, keys).map((key) => ({
        limit: LIMIT,
        key,
        fields: { consumed: 1, demand: 1 },
      }));
      for (let i = 0; i < CALLS; i += 1) {
        if (i === CALLS / 4) await admin.config("RESETSTAT");
        seq += 1;
        await pod.exchange(batchOf(items, { seq, pods: 10 }));
      }
      costs.push({ keys, us: await usPerCall() });
    }
    await admin.config("RESETSTAT");
    for (let i = 0; i < CALLS; i += 1) {
      await pod.heartbeat({ timeoutUs: 5 * SECOND, silentAfterUs: 2.5 * SECOND, largeCosts: [] });
    }
    const join = await usPerCall();
    await pod.close();
    const [one, , many] = costs.map(({ us }) => us) as [number, number, number];
    const perKey = (many - one) / (BATCH_ENTRIES_MAX - 1);
    for (const { keys, us } of costs) print(`reconcile, ${keys} keys: ${us.toFixed(1)} us`);
    print(`per call ${(one - perKey).toFixed(1)} us, per key ${perKey.toFixed(1)} us`);
    print(`heartbeat: ${join.toFixed(1)} us`);
    expect(perKey).toBeLessThan(60);
    expect(many).toBeLessThan(BATCH_ENTRIES_MAX * 60); // us; alone on its core it is a tenth
  });

  it("is a few hundred bytes per key, all of which expire", async () => {
    const pod = await podOf("pod-1");
    const before = Number(/used_memory:(\d+)/.exec(await admin.info("memory"))?.[1]);
    const keys = keysOfLane(0, LANES, 6_400, "user-");
    for (let i = 0; i < keys.length; i += BATCH_ENTRIES_MAX) {
      const items = keys.slice(i, i + BATCH_ENTRIES_MAX).map((key) => ({ limit: LIMIT, key }));
      await pod.exchange(batchOf(items, { seq: i / BATCH_ENTRIES_MAX + 1 }));
    }
    const after = Number(/used_memory:(\d+)/.exec(await admin.info("memory"))?.[1]);
    const bytes = (after - before) / keys.length;
    print(`memory: ${bytes.toFixed(0)} bytes per key`);
    expect(bytes).toBeLessThan(500);
    const { expires, total } = await keyspace();
    expect(expires).toBe(total);
    await pod.close();
  });
});

async function keyspace(): Promise<{ total: number; expires: number }> {
  const found = /db0:keys=(\d+),expires=(\d+)/.exec(await admin.info("keyspace"));
  return { total: Number(found?.[1]), expires: Number(found?.[2]) };
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
