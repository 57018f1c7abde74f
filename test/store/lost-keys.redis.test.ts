import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { FAULT } from "../../src/core/exchange.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Leased, leasedOf, leases, type Taken, takenOf, takes } from "./asking.ts";
import { BothStores, laneOf } from "./both-stores.ts";
import { keysOfLane, limitOf, MS, replyOf, SECOND } from "./pod.ts";

const LIMIT = limitOf({ name: "api", tokens: 1, burst: 100 });
const [KEY = ""] = keysOfLane(0, 4, 1);

let server: RedisServer;
let admin: Redis;
let both: BothStores;

beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.port, server.host);
});

beforeEach(async () => {
  await admin.flushall();
  both = new BothStores(server, admin);
});

afterEach(() => both.close());

afterAll(async () => {
  admin.disconnect();
  await server.dispose();
});

interface Word {
  readonly level: number;
  readonly fault: number;
}

/** A report of so many tokens by a pod that knows that the bucket is full no sooner than so. */
async function report(
  consumed: number,
  fullInUs = 0,
  rest: { repliedAt?: number; lost?: number; first?: boolean } = {},
): Promise<Word> {
  const { repliedAt = 1, lost = 0.1, first = false } = rest;
  const fields = { consumed, demand: Math.max(0, consumed), fullAt: fullInUs, repliedAt, lost };
  const item = { limit: LIMIT, key: KEY, fields };
  const at = { pods: 3, hold: 0, first };
  const { level, fault } = replyOf(await both.batch("pod-a", "a1", laneOf(KEY), [item], at), 0);
  return { level, fault };
}

async function take(fullInUs: number, runs: [number, number][]): Promise<Taken> {
  const reply = await both.call("pod-a", "a1", laneOf(KEY), (heardAtUs) =>
    takes([{ limit: LIMIT, key: KEY, fields: { fullAt: heardAtUs + fullInUs, runs } }]),
  );
  return takenOf(reply);
}

async function lease(fullInUs: number, want: number): Promise<Leased> {
  const reply = await both.call("pod-a", "a1", laneOf(KEY), (heardAtUs) =>
    leases([{ limit: LIMIT, key: KEY, fields: { fullAt: heardAtUs + fullInUs, need: 1, want } }]),
  );
  return leasedOf(reply);
}

const DRAINED = 90 * SECOND;

describe("a key that is gone before its bucket can be full", () => {
  beforeEach(async () => {
    expect(await report(100)).toMatchObject({ level: 0 });
    both.pass(SECOND, 0);
    await both.drop(LIMIT, KEY);
  });

  it("starts at a part of the burst, and the reply says that it was lost", async () => {
    expect(await report(0, DRAINED)).toEqual({ level: 10, fault: FAULT.lost });
    both.pass(SECOND, 0);
    expect(await report(0, DRAINED)).toEqual({ level: 11, fault: FAULT.none });
  });

  it("starts with nothing when its limit is strict, and refills after a second", async () => {
    expect(await take(DRAINED, [[1, 3]])).toMatchObject({ fault: FAULT.lost, admitted: [0] });
    both.pass(900 * MS, 0);
    expect(await take(DRAINED, [[1, 3]])).toMatchObject({ fault: FAULT.none, admitted: [0] });
    both.pass(1_200 * MS, 0);
    expect(await take(DRAINED, [[1, 3]])).toMatchObject({ admitted: [1] });
  });

  it("grants no lease", async () => {
    expect(await lease(DRAINED, 20)).toMatchObject({ fault: FAULT.lost, granted: 0 });
    both.pass(3_000 * MS, 0);
    expect(await lease(DRAINED, 20)).toMatchObject({ fault: FAULT.none, granted: 2 });
  });

  it("is full for a pod that was told nothing of it, or whose time has come", async () => {
    expect(await report(0, 0)).toEqual({ level: 100, fault: FAULT.none });
    await both.drop(LIMIT, KEY);
    both.pass(SECOND, 0);
    expect(await report(0, SECOND)).toEqual({ level: 100, fault: FAULT.none });
  });

  it("is judged by the loss of everything when there was one", async () => {
    await both.flush();
    expect(await report(0, DRAINED)).toEqual({ level: 10, fault: FAULT.none });
    await both.drop(LIMIT, KEY);
    both.pass(20 * SECOND, 0);
    expect(await report(0, DRAINED)).toEqual({ level: 10, fault: FAULT.lost });
  });

  it("is left to what pods report again when a failover may have lost it", async () => {
    both.changeRun(77);
    expect(await report(0, DRAINED)).toEqual({ level: 100, fault: FAULT.none });
    await both.drop(LIMIT, KEY);
    both.pass(2 * SECOND, 0);
    await report(0, 0, { repliedAt: 0 });
    await both.drop(LIMIT, KEY);
    expect(await report(0, DRAINED)).toEqual({ level: 10, fault: FAULT.lost });
  });

  it("takes nothing back that was taken before", async () => {
    await report(0, DRAINED, { lost: 0 });
    both.pass(2 * SECOND, 0);
    const reply = await both.call("pod-a", "a1", laneOf(KEY), (heardAtUs) => {
      const fields = { giveBack: 50, takenAt: heardAtUs - SECOND };
      return takes([{ limit: LIMIT, key: KEY, fields }]);
    });
    expect(takenOf(reply).level).toBe(1);
  });
});

describe("a key that is full earlier than a pod was told", () => {
  it("is kept for as long as that pod could miss it", async () => {
    await report(100);
    both.pass(SECOND, 0);
    expect(await report(-100)).toMatchObject({ level: 100 });
    await both.compareAll();
    expect(await admin.pttl((await admin.keys("*:api:*"))[0] ?? "")).toBeGreaterThan(150_000);
    both.pass(80 * SECOND, 0);
    expect(await report(0, 10 * SECOND)).toEqual({ level: 100, fault: FAULT.none });
  });
});
