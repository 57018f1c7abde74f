import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { KeyNames } from "../../src/store/redis/keys.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { BothStores, LANES } from "./both-stores.ts";
import { MS, SECOND } from "./pod.ts";

let server: RedisServer;
let admin: Redis;
let both: BothStores;

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
afterEach(() => both.close());

/** A heartbeat of each of the first pods; the band that the last one heard. */
async function beat(count: number): Promise<number> {
  let band = 0;
  for (let i = 0; i < count; i += 1) band = (await both.roster(`pod-${i}`, "a1")).band;
  return band;
}

async function beatFor(seconds: number, count: number): Promise<number> {
  let band = 0;
  for (let i = 0; i < seconds; i += 1) {
    both.pass(1 * SECOND, 0);
    band = await beat(count);
  }
  return band;
}

describe("the band of the fleet's size", () => {
  it("is the smallest power of two not below the pods, at once on the way up", async () => {
    const bands: number[] = [];
    for (let i = 0; i < 9; i += 1) bands.push((await both.roster(`pod-${i}`, "a1")).band);
    expect(bands).toEqual([1, 2, 4, 4, 8, 8, 8, 8, 16]);
  });

  it("falls when a minute's counts have fitted below it, to the highest of them", async () => {
    await beat(9);
    // Four leave; five are counted from then on, then three.
    for (let i = 5; i < 9; i += 1) await both.leave(`pod-${i}`, "a1");
    expect(await beatFor(30, 5)).toBe(16);
    for (let i = 3; i < 5; i += 1) await both.leave(`pod-${i}`, "a1");
    expect(await beatFor(30, 3)).toBe(16);
    expect(await beatFor(1, 3)).toBe(8);
    expect(await beatFor(59, 3)).toBe(8);
    expect(await beatFor(1, 3)).toBe(4);
  });

  it("stays when the pods come back within the minute, and the minute begins anew", async () => {
    await beat(5);
    await both.leave("pod-4", "a1");
    expect(await beatFor(50, 4)).toBe(8);
    await beat(5);
    await both.leave("pod-4", "a1");
    expect(await beatFor(60, 4)).toBe(8);
    expect(await beatFor(1, 4)).toBe(4);
  });

  it("is known again after a data loss", async () => {
    await beat(5);
    await both.flush();
    expect(await beat(5)).toBe(8);
  });
});

describe("large costs", () => {
  it("that one pod saw are told to all, sorted, for ten minutes", async () => {
    expect((await both.roster("pod-a", "a1", ["pay", "api"])).largeCosts).toEqual(["api", "pay"]);
    both.pass(300 * SECOND, 0);
    expect((await both.roster("pod-b", "a1", ["pay"])).largeCosts).toEqual(["api", "pay"]);
    both.pass(300 * SECOND, 0);
    expect((await both.roster("pod-b", "a1")).largeCosts).toEqual(["pay"]);
    both.pass(300 * SECOND, 0);
    expect((await both.roster("pod-b", "a1")).largeCosts).toEqual([]);
  });

  it("are told for sixteen limits a heartbeat and kept for 256, the newest", async () => {
    for (let i = 0; i < 20; i += 1) {
      both.pass(10 * MS, 0);
      const names = Array.from({ length: 17 }, (_, j) => `limit-${1_000 + 16 * i + j}`);
      await both.roster("pod-a", "a1", names);
    }
    const { largeCosts } = await both.roster("pod-a", "a1");
    expect(largeCosts).toHaveLength(256);
    expect(largeCosts.at(0)).toBe("limit-1064");
    expect(largeCosts.at(-1)).toBe("limit-1319");
  });

  it("have an expiry, and a key of another type in their place is replaced", async () => {
    const key = new KeyNames("model", LANES).largeCosts();
    await admin.set(key, "x");
    expect((await both.roster("pod-a", "a1", ["api"])).largeCosts).toEqual(["api"]);
    expect(await admin.pttl(key)).toBeGreaterThan(590_000);
  });

  it("outlive a clock that was lost with the lane's record, for ten minutes from then", async () => {
    await both.roster("pod-a", "a1", ["api"]);
    both.pass(100 * MS, -3_600 * SECOND);
    await both.damageLane(0, "text");
    expect((await both.roster("pod-a", "a1")).largeCosts).toEqual(["api"]);
    both.pass(600 * SECOND, 0);
    expect((await both.roster("pod-a", "a1")).largeCosts).toEqual([]);
  });
});

describe("a pod that started anew", () => {
  it("is counted once, as soon as its former self has missed a heartbeat", async () => {
    await both.roster("pod-0", "a1");
    await both.roster("pod-1", "a1");
    // Killed and back at once: until the old one is late, nobody can tell them apart.
    expect((await both.roster("pod-0", "b2")).pods).toBe(3);
    both.pass(1.6 * SECOND, 0);
    await both.roster("pod-1", "a1");
    expect(await both.roster("pod-0", "b2")).toMatchObject({ pods: 2, silent: 0 });
  });

  it("does not push out another pod whose name begins like its own", async () => {
    await both.roster("pod-1/x", "a1");
    await both.roster("pod-1", "a1");
    both.pass(2 * SECOND, 0);
    expect((await both.roster("pod-1", "b2")).pods).toBe(2);
  });
});
