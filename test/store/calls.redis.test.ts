import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Limit } from "../../src/core/limit.ts";
import { KeyNames } from "../../src/store/redis/keys.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import {
  type Leased,
  type LeaseFields,
  leasedOf,
  leases,
  type TakeFields,
  type Taken,
  takenOf,
  takes,
} from "./asking.ts";
import { BothStores, LANES } from "./both-stores.ts";
import { keysOfLane, limitOf, MS, replyOf, SECOND } from "./pod.ts";

const LIMIT: Limit = limitOf({ name: "api" });
const [KEY = "", OTHER = ""] = keysOfLane(0, LANES, 2);

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

async function take(fields: TakeFields, limit = LIMIT, key = KEY): Promise<Taken> {
  const reply = await both.call("pod-a", "a1", 0, () => takes([{ limit, key, fields }]));
  return takenOf(reply);
}

async function takeSome(count: number, cost = 1): Promise<number> {
  const { admitted } = await take({ runs: [[cost, count]], demand: count * cost });
  return admitted[0] ?? Number.NaN;
}

async function lease(fields: LeaseFields, limit = LIMIT, key = KEY): Promise<Leased> {
  const reply = await both.call("pod-a", "a1", 0, () => leases([{ limit, key, fields }]));
  return leasedOf(reply);
}

async function now(): Promise<number> {
  return (await both.call("pod-a", "a1", 0, () => takes([]))).nowUs;
}

async function spend(consumed: number): Promise<number> {
  const fields = { consumed, demand: consumed };
  const items = [{ limit: LIMIT, key: KEY, fields }];
  return replyOf(await both.batch("pod-a", "a1", 0, items, { pods: 1, hold: 0 })).level;
}

describe("a take", () => {
  it("decides costs in order and admits each that fits", async () => {
    const reply = await take({
      runs: [
        [60, 1],
        [50, 1],
        [30, 2],
        [10, 3],
      ],
    });
    expect(reply).toMatchObject({ admitted: [1, 0, 1, 1], level: 0, deniedCost: 10 });
  });

  it("admits of ten thousand equal checks as many as there are tokens", async () => {
    expect(await takeSome(10_000)).toBe(100);
    both.pass(55 * MS, 0);
    expect(await takeSome(10_000)).toBe(5);
  });

  it("denies a cost above the burst, and says when a full bucket would be that full", async () => {
    const reply = await take({ runs: [[101, 1]] });
    expect(reply).toMatchObject({ admitted: [0], level: 100, deniedCost: 101 });
    expect(reply.retryAt).toBe((await now()) + 10 * MS);
  });

  it("tells nothing but time and epoch to a call without entries", async () => {
    const reply = await both.call("pod-a", "a1", 0, () => takes([]));
    expect(reply.entries).toHaveLength(0);
    expect(reply.nowUs).toBeGreaterThan(0);
    expect(reply.epoch).toBeGreaterThan(0);
    const again = await both.call("pod-a", "a1", 0, () => leases([]));
    expect(again).toEqual(reply);
  });

  it("tells the level to an entry without costs, and spends nothing", async () => {
    expect(await take({})).toEqual({
      level: 100,
      deniedCost: 0,
      fault: 0,
      retryAt: 0,
      admitted: [],
    });
  });

  it("cannot spend what hybrid pods hold as stock", async () => {
    const fields = { demand: 10, held: 70 };
    await both.batch("pod-b", "a1", 0, [{ limit: LIMIT, key: KEY, fields }], { pods: 1, hold: 0 });
    const { level } = await take({});
    expect(level).toBeLessThanOrEqual(30);
    expect(await takeSome(100)).toBe(level);
  });

  it("leaves a hybrid report to find the level lowered", async () => {
    await takeSome(30);
    expect(await spend(0)).toBe(70);
  });

  it("refills with the part that is not held back", async () => {
    await takeSome(100);
    both.pass(1 * SECOND, 0);
    const body = () => takes([{ limit: LIMIT, key: KEY }]);
    const reply = await both.call("pod-a", "a1", 0, body, { hold: 0.25 });
    expect(takenOf(reply).level).toBe(75);
  });
});

describe("tokens given back", () => {
  it("lose what has refilled since, where the bucket could have been full, and not more", async () => {
    await takeSome(40);
    const takenAt = await now();
    both.pass(100 * MS, 0);
    expect((await take({})).level).toBe(70);
    expect(await take({ giveBack: 40, takenAt })).toMatchObject({ level: 100 });
    await takeSome(100);
    // Of the forty ten have refilled, and a bucket without their take had nothing to refill.
    both.pass(300 * MS, 0);
    expect(await take({ giveBack: 40, takenAt })).toMatchObject({ level: 30 });
    expect(await take({ giveBack: 41, takenAt })).toMatchObject({ level: 31 });
  });

  it("are all there again while the bucket lacks more than was taken lately", async () => {
    await takeSome(60);
    both.pass(300 * MS, 0);
    await takeSome(70);
    both.pass(100 * MS, 0);
    await takeSome(5);
    const takenAt = await now();
    both.pass(50 * MS, 0);
    expect((await take({})).level).toBe(10);
    expect(await take({ giveBack: 5, takenAt })).toMatchObject({ level: 15 });
  });

  it("are gone when of a take in the future", async () => {
    await takeSome(100);
    const takenAt = (await now()) + 1;
    const { level } = await take({});
    expect(await take({ giveBack: 40, takenAt })).toMatchObject({ level });
  });

  it("never reach tokens that are out in leases", async () => {
    const { granted } = await lease({ need: 60, want: 60 });
    expect(granted).toBe(60);
    const takenAt = await now();
    expect(await take({ giveBack: 1_000, takenAt })).toMatchObject({ level: 40 });
  });
});

describe("tickets", () => {
  it("come one behind the other, not before the cost fits, at most 2 s later", async () => {
    await takeSome(100);
    const at = await now();
    const waits: number[] = [];
    for (let i = 0; i < 3; i += 1) waits.push((await take({ runs: [[2, 1]] })).retryAt - at);
    // Two tokens take 20 ms; at 100 a second there may be a call every 5 ms.
    expect(waits).toEqual([20 * MS, 25 * MS, 30 * MS]);
    for (let i = 0; i < 500; i += 1) await take({ runs: [[2, 1]] });
    expect((await take({ runs: [[2, 1]] })).retryAt - at).toBe(2 * SECOND + 20 * MS);
  });

  it("hold: who comes then is admitted", async () => {
    const odd = limitOf({ name: "odd", tokens: 7, spanUs: 13 * SECOND, burst: 11 });
    await take({ runs: [[11, 1]] }, odd);
    const { retryAt } = await take({ runs: [[3, 1]] }, odd);
    both.pass(retryAt - (await now()) - 1, 0);
    expect((await take({ runs: [[3, 1]] }, odd)).admitted).toEqual([0]);
    both.pass(1, 0);
    expect((await take({ runs: [[3, 1]] }, odd)).admitted).toEqual([1]);
  });
});

describe("a lease", () => {
  it("is out until it is spent, returned or its slot ends", async () => {
    const first = await lease({ need: 30, want: 30, demand: 30, elapsedSeconds: -1 });
    expect(first).toMatchObject({ granted: 30, level: 70, activePods: 1, retryAt: 0 });
    const { slot } = first;
    both.pass(100 * MS, 0);
    expect(await lease({ reports: [[slot, 10, 5]] })).toMatchObject({ granted: 0, level: 75 });
    both.pass(100 * MS, 0);
    // Only the ten spent are refilled: fifteen are still out.
    expect(await lease({})).toMatchObject({ level: 85 });
    both.pass(1_500 * MS, 0);
    expect(await lease({ reports: [[slot, 10, 5]] })).toMatchObject({ level: 100 });
  });

  it("belongs to the third slot end from now on, so it lives 1 to 1.5 s", async () => {
    for (let i = 0; i < 20; i += 1) {
      both.pass(77 * MS, 0);
      const at = await now();
      const life = (await lease({ need: 1, want: 1 })).slot * 500 * MS - at;
      expect(life).toBeGreaterThan(1_000 * MS);
      expect(life).toBeLessThanOrEqual(1_500 * MS);
    }
  });

  it("gives a lone pod what it wants, and one of many about twice its part", async () => {
    expect(await lease({ want: 50, demand: 50, elapsedSeconds: -1 })).toMatchObject({
      granted: 50,
    });
    const many = (i: number) =>
      both.call(`pod-${i}`, "a1", 0, () =>
        leases([{ limit: LIMIT, key: OTHER, fields: { elapsedSeconds: -1, demand: 5 } }]),
      );
    for (let i = 0; i < 9; i += 1) await many(i);
    const tenth = await both.call("pod-9", "a1", 0, () =>
      leases([{ limit: LIMIT, key: OTHER, fields: { elapsedSeconds: -1, demand: 5, want: 90 } }]),
    );
    expect(leasedOf(tenth)).toMatchObject({ granted: 20, activePods: 10 });
  });

  it("grants nothing below the smallest cost that waits, and gives a ticket", async () => {
    await takeSome(95);
    const reply = await lease({ need: 10, unit: 10, want: 10, demand: 10 });
    expect(reply).toMatchObject({ granted: 0, level: 5 });
    expect(reply.retryAt).toBe((await now()) + 50 * MS);
  });

  it("gives a ticket with a part of what was needed", async () => {
    await takeSome(95);
    const reply = await lease({ need: 10, unit: 1, want: 10, low: 2 });
    expect(reply).toMatchObject({ granted: 5, level: 0 });
    expect(reply.retryAt).toBeGreaterThan(await now());
  });

  it("that is held keeps its tokens out, whatever is reported of an older one", async () => {
    const { slot } = await lease({ need: 20, want: 20 });
    both.pass(900 * MS, 0);
    const held = await lease({ need: 20, want: 20 });
    expect(held.slot).toBe(slot + 1);
    both.pass(50 * MS, 0);
    await lease({ reports: [[slot, 20, 0]] });
    both.pass(850 * MS, 0);
    // Nearly at its last instant; the older slot has ended, and the bucket would be full.
    expect(await lease({})).toMatchObject({ level: 80 });
    both.pass(400 * MS, 0);
    expect(await lease({})).toMatchObject({ level: 100 });
  });

  it("passes over reports for slots that have ended, are not yet, or never were", async () => {
    const { slot } = await lease({ need: 40, want: 40 });
    const reports = [-4, -3, 1, 4, 1e9, -1e9].map((by) => [slot + by, 40, 40] as const);
    expect(await lease({ reports })).toMatchObject({ level: 60 });
  });

  it("takes no more of a slot than is out in it, and nothing below zero", async () => {
    const { slot } = await lease({ need: 40, want: 40 });
    expect(await lease({ reports: [[slot, -1_000, -1_000]] })).toMatchObject({ level: 60 });
    expect(await lease({ reports: [[slot, 0, 1_000]] })).toMatchObject({ level: 100 });
  });

  it("outlives its time also where a tick is a second", async () => {
    const bulk = limitOf({
      name: "bulk",
      tokens: 999_999_937,
      spanUs: 86_400 * SECOND,
      burst: 1_000_000_000,
    });
    expect(bulk.tickUs).toBe(SECOND);
    both.pass(999 * MS, 0);
    await lease({ need: 1_000_000_000, want: 1_000_000_000 }, bulk);
    both.pass(1_000 * MS, 0);
    const { level } = await lease({}, bulk);
    expect(level).toBe(0);
  });

  it("keeps an expiry of its slots on a key that is full without it", async () => {
    await lease({ need: 40, want: 40 });
    const ttl = await admin.pttl(new KeyNames("model", LANES).state("api", KEY));
    expect(ttl).toBeGreaterThan(61_500);
  });
});
