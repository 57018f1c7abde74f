import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Limit } from "../../src/core/limit.ts";
import { SystemClock } from "../../src/runtime/system-clock.ts";
import { KeyNames } from "../../src/store/redis/keys.ts";
import type {
  RedisCoordinator,
  RedisCoordinatorOptions,
} from "../../src/store/redis/redis-coordinator.ts";
import { unpackDoubles } from "../../src/store/redis/replies.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { LANES } from "./both-stores.ts";
import { accessTo, connected } from "./connected.ts";
import { batchOf, keysOfLane, limitOf, replyOf } from "./pod.ts";
import { TcpProxy } from "./tcp-proxy.ts";

// One token per hour: what is consumed stays visible as burst - level.
const HOUR_US = 3_600_000_000;
const LIMIT: Limit = limitOf({ name: "slow", tokens: 1, spanUs: HOUR_US, burst: 1_000 });
const [KEY = ""] = keysOfLane(0, LANES, 1);
const NAMES = new KeyNames("once", LANES);

let server: RedisServer;
let admin: Redis;
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
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

async function coordinator(rest: Partial<RedisCoordinatorOptions> = {}): Promise<RedisCoordinator> {
  const identity = { fleet: "once", podId: "pod-a", incarnation: "a1", clock: new SystemClock() };
  const made = await connected({ ...accessTo(server), ...identity, ...rest });
  open.push(made);
  return made;
}

const spend = (seq: number, consumed: number) =>
  batchOf([{ limit: LIMIT, key: KEY, fields: { consumed, demand: consumed } }], { seq });

/** Tokens that Redis holds as consumed, exact because the limit refills one per hour. */
async function recorded(): Promise<number> {
  const state = unpackDoubles((await admin.getBuffer(NAMES.state("slow", KEY))) as Buffer);
  return Math.ceil((state[3] as number) / (state[1] as number));
}

describe("a batch is applied exactly once", () => {
  it("when it is sent again after its reply was heard", async () => {
    const pod = await coordinator();
    const first = await pod.exchange(spend(1, 7));
    const again = await pod.exchange(spend(1, 7));
    expect(first.duplicate).toBe(false);
    expect(again.duplicate).toBe(true);
    expect(replyOf(first).granted).toBeGreaterThan(0);
    expect(replyOf(again).granted).toBe(0);
    expect(await recorded()).toBe(7);
  });

  it("when the reply was lost after the script ran, and the connection with it", async () => {
    const proxy = new TcpProxy(server.port);
    await proxy.listen();
    open.push(proxy);
    const pod = await coordinator({
      topology: { kind: "single", server: { host: "127.0.0.1", port: proxy.port } },
    });
    await pod.exchange(spend(1, 7));
    proxy.losesReplies = true;
    const lost = proxy.nextLostReply();
    const unanswered = pod.exchange(spend(2, 5));
    await lost;
    proxy.losesReplies = false;
    proxy.cut();
    await expect(unanswered).rejects.toMatchObject({
      kind: "unreachable",
      message: "the connection to Redis was lost",
    });
    expect(await recorded()).toBe(12);

    const again = await untilAnswered(() => pod.exchange(spend(2, 5)));
    expect(again.duplicate).toBe(true);
    expect(await recorded()).toBe(12);
    await pod.exchange(spend(3, 1));
    expect(await recorded()).toBe(13);
  });

  it("when the scripts were flushed from the server", async () => {
    const pod = await coordinator();
    await pod.exchange(spend(1, 7));
    await admin.script("FLUSH");
    const reply = await pod.exchange(spend(2, 5));
    expect(reply.duplicate).toBe(false);
    expect(await recorded()).toBe(12);
  });

  it("when the server killed the connection", async () => {
    const pod = await coordinator();
    await pod.exchange(spend(1, 7));
    await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    const reply = await untilAnswered(() => pod.exchange(spend(2, 5)));
    expect(reply.previousSeq).toBe(1);
    expect(await recorded()).toBe(12);
  });

  it("and tells the number applied before, also when it is a repetition", async () => {
    const pod = await coordinator();
    await pod.exchange(spend(1, 1));
    await pod.exchange(spend(2, 1));
    const gap = await pod.exchange(spend(5, 1));
    const again = await pod.exchange(spend(5, 1));
    expect([gap.previousSeq, again.previousSeq]).toEqual([2, 2]);
    const older = await pod.exchange(spend(4, 100));
    expect(older).toMatchObject({ duplicate: true, previousSeq: 5 });
    expect(await recorded()).toBe(3);
  });

  it("for each process of a pod: a late batch of the old one disturbs nothing", async () => {
    const old = await coordinator();
    await old.exchange(spend(1, 1));
    await old.exchange(spend(2, 1));
    const fresh = await coordinator({ incarnation: "b2" });
    expect(await fresh.exchange(spend(1, 1))).toMatchObject({ duplicate: false, previousSeq: 0 });
    expect(await old.exchange(spend(2, 1))).toMatchObject({ duplicate: true });
    expect(await fresh.exchange(spend(1, 1))).toMatchObject({ duplicate: true });
    expect(await recorded()).toBe(3);
  });

  it("also behind a key of a wrong type, which is replaced at the level of a loss", async () => {
    const pod = await coordinator();
    const [, broken = "", last = ""] = keysOfLane(0, LANES, 3);
    await admin.rpush(NAMES.state("slow", broken), "x");
    const items = [KEY, broken, last].map((key) => ({
      limit: LIMIT,
      key,
      fields: { consumed: 3, demand: 3 },
    }));
    const reply = await pod.exchange(batchOf(items));
    expect([0, 1, 2].map((i) => replyOf(reply, i).fault)).toEqual([0, 1, 0]);
    expect([0, 1, 2].map((i) => replyOf(reply, i).level)).toEqual([997, 97, 997]);
    const again = await pod.exchange(batchOf(items, { seq: 2 }));
    expect([0, 1, 2].map((i) => replyOf(again, i).fault)).toEqual([0, 0, 0]);
  });
});

describe("O13 what is recorded is what was admitted", () => {
  it("(b) denied demand adds nothing to the consumption", async () => {
    const pod = await coordinator();
    await pod.exchange(spend(1, 1_000));
    const denied = { limit: LIMIT, key: KEY, fields: { consumed: 0, demand: 40, want: 1 } };
    await pod.exchange(batchOf([denied], { seq: 2 }));
    expect(await recorded()).toBe(1_000);
  });

  it("(c) a deficit near 10^14 is kept to the last digit", async () => {
    const pod = await coordinator();
    await pod.exchange(spend(1, 1));
    const name = NAMES.state("slow", KEY);
    const state = unpackDoubles((await admin.getBuffer(name)) as Buffer);
    state[3] = 99_999_999_999_990;
    state[0] = 1;
    state[1] = 1;
    state[2] = 200_000_000_000_000;
    await admin.set(name, Buffer.from(state.buffer), "PX", 60_000);
    // One token per second's 10^-6 part: as a tick is a microsecond, time must stand still here.
    const huge = { ...LIMIT, refill: 1, period: 1, burst: 200_000_000_000_000 };
    const now = state[4] as number;
    const still = await coordinator({ incarnation: "c3", storeTime: () => now });
    const item = { limit: huge, key: KEY, fields: { consumed: 20, demand: 20 } };
    await still.exchange(batchOf([item]));
    const after = unpackDoubles((await admin.getBuffer(name)) as Buffer);
    expect(after[3]).toBe(100_000_000_000_010);
  });
});

/** Calls again while there is no connection; a reconnect takes up to 1.4 s. */
async function untilAnswered<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      expect(error).toMatchObject({ kind: "unreachable" });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
