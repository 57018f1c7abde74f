import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Limit } from "../../src/core/limit.ts";
import { KeyNames } from "../../src/store/redis/keys.ts";
import { createRedisCoordinator } from "../../src/store/redis/redis-coordinator.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { BothStores, LANES } from "./both-stores.ts";
import { accessTo, connected } from "./connected.ts";
import { batchOf, keysOfLane, limitOf, ManualClock, MS, replyOf, SECOND } from "./pod.ts";

const LIMIT: Limit = limitOf({ name: "api" });
const [KEY = "", OTHER = ""] = keysOfLane(0, LANES, 2);
const TERMS = { timeoutUs: 5 * SECOND, silentAfterUs: 2_500 * MS, largeCosts: [] };

let server: RedisServer;
let admin: Redis;
let both: BothStores;
const open: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.port, server.host);
});
afterAll(async () => {
  admin.disconnect();
  await server.dispose();
});
beforeEach(async () => {
  await admin.flushall();
  both = new BothStores(server, admin);
});
afterEach(async () => {
  await both.close();
  await Promise.all(open.splice(0).map((each) => each.close()));
});

const EVEN = { pods: 1, hold: 0 };

/** Consumes in both stores and tells the level afterwards. */
async function spend(consumed: number, limit = LIMIT, key = KEY, hold = 0): Promise<number> {
  const fields = { consumed, demand: Math.max(0, consumed) };
  const reply = await both.batch("pod-a", "a1", 0, [{ limit, key, fields }], { ...EVEN, hold });
  return replyOf(reply).level;
}

describe("the level of a key", () => {
  it("falls by what was consumed, refills with time, and never rises above the burst", async () => {
    expect(await spend(100)).toBe(0);
    both.pass(250 * MS, 0);
    expect(await spend(0)).toBe(25);
    both.pass(60 * SECOND, 0);
    expect(await spend(0)).toBe(100);
    expect(await spend(-50)).toBe(100);
  });

  it("goes into debt down to the most that is counted, and tells what was forgiven", async () => {
    const fields = { consumed: 1_000, demand: 0 };
    const reply = await both.batch("pod-a", "a1", 0, [{ limit: LIMIT, key: KEY, fields }], EVEN);
    expect(replyOf(reply)).toMatchObject({ level: -200, clipped: 700 });
  });

  it("refills with the part that is not held back for pods that are cut off", async () => {
    await spend(100);
    both.pass(500 * MS, 0);
    expect(await spend(0, LIMIT, KEY, 0.25)).toBe(37.5);
  });

  it("is scaled with the burst when the limit changes, and back, and debt stays", async () => {
    const half = limitOf({ name: "api", tokens: 50, burst: 50 });
    await spend(40);
    expect(await spend(0, half)).toBe(30);
    expect(await spend(0)).toBe(60);
    await spend(110);
    expect(await spend(0, half)).toBe(-50);
  });

  it("is full for a key that was never seen, also right after the first start", async () => {
    expect(await spend(0)).toBe(100);
    both.pass(10 * MS, 0);
    expect(await spend(0, LIMIT, OTHER)).toBe(100);
  });
});

describe("O4 O5 a clock of Redis that steps", () => {
  it.each([-60, -10, -1.5, 3, 10, 60])("by %d s gives nothing and freezes nothing", async (s) => {
    await spend(100);
    both.pass(100 * MS, 0);
    await spend(0);
    both.pass(100 * MS, s * SECOND);
    await spend(0);
    both.pass(100 * MS, 0);
    const level = await spend(0);
    // 30 tokens were refilled in 0.3 s; the interval of a step back is the one that is lost.
    expect(level).toBeGreaterThanOrEqual(20);
    expect(level).toBeLessThanOrEqual(30);
  });

  it("keeps N = 3 members whose own clocks are 5 s apart, and nothing negative", async () => {
    const clocks = [-5, 0, 5].map((skew) => {
      const clock = new ManualClock();
      clock.nowUs += skew * SECOND;
      return clock;
    });
    const access = { ...accessTo(server), fleet: "skew" };
    const pods = await Promise.all(
      clocks.map((clock, i) =>
        connected({ ...access, podId: `pod-${i}`, incarnation: "a1", clock }),
      ),
    );
    open.push(...pods);
    for (let round = 1; round <= 3; round += 1) {
      for (const pod of pods) {
        const item = { limit: LIMIT, key: KEY, fields: { consumed: 10, demand: 10 } };
        await pod.exchange(batchOf([item], { seq: round, pods: 3 }));
        await pod.heartbeat({ timeoutUs: 3 * SECOND, silentAfterUs: 2 * SECOND, largeCosts: [] });
      }
    }
    for (const pod of pods) {
      expect(await pod.heartbeat(TERMS)).toMatchObject({ pods: 3, silent: 0 });
    }
    const state = await admin.getBuffer(new KeyNames("skew", LANES).state("api", KEY));
    for (let at = 0; at < 128; at += 8) expect(state?.readDoubleLE(at)).toBeGreaterThanOrEqual(0);
  });
});

describe("a store that lost its data", () => {
  it("starts absent keys at a part of the burst and lets them grow with the rate", async () => {
    await spend(100);
    await both.flush();
    expect(await spend(0)).toBe(10);
    both.pass(200 * MS, 0);
    expect(await spend(0, LIMIT, OTHER)).toBe(30);
    both.pass(5 * SECOND, 0);
    expect(await spend(0, LIMIT, OTHER)).toBe(100);
  });

  it("leaves a small limit one token, so that nobody is locked out for long", async () => {
    const login = limitOf({ name: "login", tokens: 5, spanUs: 900 * SECOND, burst: 5 });
    await spend(5, login);
    await both.flush();
    expect(await spend(0, login)).toBe(1);
  });

  it("remembers the loss when a pod without memory came first", async () => {
    await spend(100);
    both.pass(1, 0); // an epoch is the instant of its creation
    await both.flush();
    await both.batch("pod-new", "b2", 0, [], EVEN);
    both.pass(10 * MS, 0);
    expect(await spend(0)).toBe(11);
  });

  it("replaces what cannot be read by the level of a loss", async () => {
    await both.damageKey(LIMIT, KEY, "hash");
    expect(await spend(0)).toBe(10);
    both.pass(5 * SECOND, 0);
    expect(await spend(0)).toBe(100);
  });
});

describe("leases that are out", () => {
  const out = { tUs: 0, stock: 0, slotUs: 0, ticketUs: 0 };

  it("keep their tokens from being refilled until their slot ends", async () => {
    await spend(0); // the lane's clock begins on a multiple of the slot length
    await both.plant(LIMIT, KEY, { ...out, leases: [0, 0.5, 0], spent: 0 });
    both.pass(300 * MS, 0);
    expect(await spend(0)).toBe(50);
    both.pass(650 * MS, 0);
    expect(await spend(0)).toBe(50);
    both.pass(150 * MS, 0);
    // The slot ended after 1 s; 0.1 s has refilled since.
    expect(await spend(0)).toBeCloseTo(60, 6);
  });

  it("bound a refund", async () => {
    await spend(0);
    await both.plant(LIMIT, KEY, { ...out, leases: [0.2, 0, 0], spent: 0.3 });
    expect(await spend(-1_000)).toBe(80);
  });
});

describe("O11 the membership", () => {
  async function fleet(count: number) {
    const access = { ...accessTo(server), fleet: "crew", clock: new ManualClock() };
    const pods = await Promise.all(
      Array.from({ length: count }, (_, i) =>
        connected({ ...access, podId: `pod-${i}`, incarnation: "a1" }),
      ),
    );
    open.push(...pods);
    return pods;
  }
  const beat = (pods: Awaited<ReturnType<typeof fleet>>) =>
    Promise.all(pods.map((pod) => pod.heartbeat(TERMS)));
  const PODS_KEY = new KeyNames("crew", LANES).pods();

  it("(a) that was deleted is whole after one heartbeat of each, and never empty", async () => {
    const pods = await fleet(8);
    await beat(pods);
    await admin.del(PODS_KEY);
    const counts = (await beat(pods)).map((roster) => roster.pods);
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(1);
    expect(counts.at(-1)).toBe(8);
  });

  it("(c) with junk in it counts only members, at once", async () => {
    const pods = await fleet(3);
    await beat(pods);
    await admin.zadd(PODS_KEY, 1e18, "", 1e18, "abc", 1e18, "7", 1e18, "a/xyz", 1e18, "/a1");
    expect((await beat(pods)).map((roster) => roster.pods)).toEqual([3, 3, 3]);
    expect(await admin.zcard(PODS_KEY)).toBe(3);
  });

  it("costs the same with many members: they are looked through only after a change", async () => {
    const [pod] = await fleet(1);
    for (let i = 0; i < 2_000; i += 1) {
      await admin.zadd(PODS_KEY, 2e15, `pod-${i}/a1`);
    }
    await pod?.heartbeat(TERMS);
    await admin.config("RESETSTAT");
    await pod?.heartbeat(TERMS);
    expect(await admin.info("commandstats")).not.toMatch(/cmdstat_zrange:/);
  });

  it("of a wrong type is replaced", async () => {
    const pods = await fleet(2);
    await admin.set(PODS_KEY, "x");
    await beat(pods);
    expect((await beat(pods)).map((roster) => roster.pods)).toEqual([2, 2]);
  });

  it("loses a member at once when it leaves, and when it is silent for too long", async () => {
    await both.roster("pod-a", "a1");
    await both.roster("pod-b", "a1");
    await both.roster("pod-c", "a1");
    await both.leave("pod-b", "a1");
    expect(await both.roster("pod-a", "a1")).toMatchObject({ pods: 2, silent: 0 });
    both.pass(2_500 * MS, 0);
    expect(await both.roster("pod-a", "a1")).toMatchObject({ pods: 2, silent: 1 });
    both.pass(2_500 * MS, 0);
    expect(await both.roster("pod-a", "a1")).toMatchObject({ pods: 1, silent: 0 });
  });
});

describe("O24 what callers choose", () => {
  it("never reaches Redis as a name, and a canary stays untouched", async () => {
    await admin.set("canary", "alive", "EX", 60);
    const keys = ["*", "foo\r\nDEL canary\r\n", 'k\n{"level":"error"}', "canary", "\0"];
    for (const [i, key] of keys.entries()) await spendIn(key, i);
    expect(await admin.get("canary")).toBe("alive");
    const names = (await admin.keys("*")).filter((name) => name !== "canary");
    for (const name of names) expect(name).toMatch(/^aliquot:\{\d+\}:model:[\w:-]+$/);
  });

  async function spendIn(key: string, consumed: number): Promise<void> {
    const lane = both.laneOf(key);
    const fields = { consumed, demand: consumed };
    const reply = await both.batch("pod-a", "a1", lane, [{ limit: LIMIT, key, fields }], EVEN);
    expect(replyOf(reply).level).toBe(100 - consumed);
  }
});

describe("a batch that the engine should never make", () => {
  const item = { limit: LIMIT, key: KEY };
  it.each([
    { what: "a NaN", batch: batchOf([{ ...item, fields: { consumed: Number.NaN } }]) },
    { what: "an infinity", batch: batchOf([{ ...item, fields: { demand: Infinity } }]) },
    { what: "a key of another lane", batch: batchOf([item], { lane: 1 }) },
    { what: "a sequence number of 0", batch: batchOf([item], { seq: 0 }) },
    { what: "too many entries", batch: batchOf(Array(65).fill(item)) },
    { what: "fewer numbers than keys", batch: batchOf([item], { entries: new Float64Array(3) }) },
  ])("with $what is refused before it is sent", async ({ batch }) => {
    const clock = new ManualClock();
    const identity = { fleet: "f", podId: "p", incarnation: "a1", clock };
    const pod = createRedisCoordinator({ ...accessTo(server), ...identity });
    open.push(pod);
    await expect(pod.exchange(batch)).rejects.toBeInstanceOf(RangeError);
    expect(pod.calls).toBe(0);
  });
});
