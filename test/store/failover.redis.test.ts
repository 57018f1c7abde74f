import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Limit } from "../../src/core/limit.ts";
import { KeyNames } from "../../src/store/redis/keys.ts";
import { unpackDoubles } from "../../src/store/redis/replies.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { callOf, type LeaseFields, leasedOf, leases, takenOf, takes } from "./asking.ts";
import { BothStores, LANES } from "./both-stores.ts";
import { accessTo, connected } from "./connected.ts";
import { keysOfLane, limitOf, ManualClock, MS, replyOf, SECOND } from "./pod.ts";

const LIMIT: Limit = limitOf({ name: "api" });
const [KEY = "", OTHER = ""] = keysOfLane(0, LANES, 2);
const RUN_FIELD = 5;

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
  for (const each of open.splice(0).reverse()) await each.close();
});

/** Tokens that a take of all there is gets. */
async function takeAll(key = KEY, lost = 0): Promise<number> {
  const fields = { runs: [[1, 1_000]] as const, lost };
  const body = () => takes([{ limit: LIMIT, key, fields }]);
  return takenOf(await both.call("pod-a", "a1", 0, body)).admitted[0] ?? Number.NaN;
}

async function lease(want: number): Promise<number> {
  const fields = { need: want, want, unit: 1 };
  const body = () => leases([{ limit: LIMIT, key: KEY, fields }]);
  return leasedOf(await both.call("pod-a", "a1", 0, body)).granted;
}

const losses: [string, () => Promise<void> | void][] = [
  ["another server process took over", () => both.changeRun(77)],
  ["the data were lost", () => both.flush()],
];

describe.each(losses)("O6 a strict limit, when %s", (_, lose) => {
  beforeEach(() => both.pass(500 * MS, 0));

  it("admits nothing for a second, and then no more than the rate", async () => {
    await takeAll();
    both.pass(10 * SECOND, 0);
    await takeAll(OTHER);
    await lose();
    expect(await takeAll()).toBe(0);
    expect(await lease(1)).toBe(0);
    both.pass(500 * MS, 0);
    // This one is asked for in the middle of the second for the first time.
    expect(await takeAll(OTHER)).toBe(0);
    both.pass(500 * MS - 1, 0);
    expect([await takeAll(), await takeAll(OTHER)]).toEqual([0, 0]);
    both.pass(100 * MS + 1, 0);
    expect([await takeAll(), await takeAll(OTHER)]).toEqual([10, 10]);
    both.pass(10 * SECOND, 0);
    expect(await takeAll()).toBe(100);
  });

  it("tells who must wait when to come again: after that second", async () => {
    await takeAll();
    await lose();
    const fields = { runs: [[5, 1]] as const };
    const reply = await both.call("pod-a", "a1", 0, () =>
      takes([{ limit: LIMIT, key: KEY, fields }]),
    );
    expect(takenOf(reply).retryAt).toBe(reply.nowUs + 1 * SECOND + 50 * MS);
  });

  it("gives new keys what was refilled since, and not nothing for ever", async () => {
    await takeAll();
    await lose();
    await takeAll();
    both.pass(1_200 * MS, 0);
    expect(await takeAll(OTHER)).toBe(20);
  });
});

describe("a failover", () => {
  it("takes nothing from limits that repair themselves", async () => {
    const fields = { consumed: 40, demand: 40, lost: 0.1 };
    const items = [{ limit: LIMIT, key: KEY, fields }];
    await both.batch("pod-a", "a1", 0, items, { pods: 1, hold: 0 });
    both.changeRun(77);
    const idle = [{ limit: LIMIT, key: KEY, fields: { lost: 0.1 } }];
    const reply = await both.batch("pod-a", "a1", 0, idle, { pods: 1, hold: 0 });
    expect(replyOf(reply).level).toBe(60);
    expect(await takeAll(OTHER, 0.1)).toBe(100);
  });

  it("is not seen in a server that does not tell its run id, nor when it tells it at last", async () => {
    both.changeRun(0);
    await takeAll();
    both.pass(10 * SECOND, 0);
    both.changeRun(5);
    expect(await takeAll()).toBe(100);
    both.changeRun(0);
    both.pass(10 * SECOND, 0);
    expect(await takeAll()).toBe(100);
    both.changeRun(6);
    expect(await takeAll()).toBe(0);
  });

  it("leaves leases of before out, and takes back what is returned of them", async () => {
    const ask = (fields: LeaseFields) =>
      both.call("pod-a", "a1", 0, () => leases([{ limit: LIMIT, key: KEY, fields }]));
    const { slot } = leasedOf(await ask({ need: 60, want: 60 }));
    both.changeRun(77);
    both.pass(100 * MS, 0);
    expect(leasedOf(await ask({ reports: [[slot, 0, 10]] }))).toMatchObject({ level: 10 });
    both.pass(1_500 * MS, 0);
    // The second of hold ended half a second ago.
    expect(leasedOf(await ask({}))).toMatchObject({ level: 60 });
  });
});

describe("O6 the run id of a real server", () => {
  const call = (key = KEY) =>
    callOf(takes([{ limit: LIMIT, key, fields: { runs: [[1, 1_000]] } }]));
  const runIn = async (client: Redis, fleet: string): Promise<number> => {
    const stored = await client.getBuffer(new KeyNames(fleet, LANES).meta(0));
    return unpackDoubles(stored ?? Buffer.alloc(0))[RUN_FIELD] ?? Number.NaN;
  };
  const runOf = async (client: Redis): Promise<number> => {
    const [, digits = ""] = /run_id:(\w{12})/.exec(await client.info("server")) ?? [];
    return Number.parseInt(digits, 16);
  };
  const pod = async (of: RedisServer, fleet: string, rest = {}) => {
    const identity = { fleet, podId: "pod-a", incarnation: "a1", clock: new ManualClock() };
    const coordinator = await connected({ ...accessTo(of), ...identity, ...rest });
    open.push(coordinator);
    return coordinator;
  };

  it("is in the record of the lane after the first call, read here or looked up there", async () => {
    const run = await runOf(admin);
    await (await pod(server, "told")).call(call());
    expect(await runIn(admin, "told")).toBe(run);
    await (await pod(server, "asked", { storeRun: () => -1 })).call(call());
    expect(await runIn(admin, "asked")).toBe(run);
  });

  it("tells a replica that was promoted from the primary that it copied", async () => {
    const before = await pod(server, "promoted");
    expect(takenOf(await before.call(call())).admitted).toEqual([100]);
    const replica = await startRedis();
    open.push({ close: () => replica.dispose() });
    const other = new Redis(replica.port, replica.host);
    open.push({ close: async () => other.disconnect() });
    await other.replicaof(server.host, `${server.port}`);
    while (!/master_link_status:up/.test(await other.info("replication"))) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await other.replicaof("NO", "ONE");
    expect(await runIn(other, "promoted")).toBe(await runOf(admin));
    const after = await pod(replica, "promoted");
    expect(takenOf(await after.call(call(OTHER))).admitted).toEqual([0]);
    expect(await runIn(other, "promoted")).toBe(await runOf(other));
  });
});
