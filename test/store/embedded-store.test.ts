import { describe, expect, it } from "vitest";
import type { Limit } from "../../src/core/limit.ts";
import { CoordinatorError } from "../../src/ports/coordinator.ts";
import { expn } from "../../src/store/embedded/arithmetic.ts";
import { createEmbeddedCoordinator } from "../../src/store/embedded/embedded-coordinator.ts";
import { EmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { LaneEar } from "../../src/store/lane-ear.ts";
import { batchOf, limitOf, ManualClock, MS, replyOf, SECOND } from "./pod.ts";

const LIMIT: Limit = limitOf({ name: "api" });
const START = 1_000 * SECOND;
const TERMS = { timeoutUs: 5 * SECOND, silentAfterUs: 2_500 * MS, largeCosts: [] };
const NOTHING_HEARD = { epoch: 0, heardAtUs: 0, heardAgoUs: 0 };

const spend = (seq: number, consumed: number, key = "k", rest = {}) =>
  batchOf([{ limit: LIMIT, key, fields: { consumed, demand: consumed } }], { seq, ...rest });

describe("the embedded store", () => {
  it("applies a batch once", () => {
    const store = new EmbeddedStore();
    store.reconcile(START, "p/a1", spend(1, 30));
    const again = store.reconcile(START, "p/a1", spend(1, 30));
    expect(again.duplicate).toBe(true);
    expect(replyOf(again)).toMatchObject({ level: 70, granted: 0 });
  });

  it("goes back to a snapshot, as a failover to a replica that lags does", () => {
    const store = new EmbeddedStore();
    store.reconcile(START, "p/a1", spend(1, 30));
    store.heartbeat(START, "p/a1", TERMS, NOTHING_HEARD);
    const replica = store.snapshot();
    store.reconcile(START, "p/a1", spend(2, 30));
    store.restore(replica);
    const reply = store.reconcile(START, "p/a1", spend(3, 0));
    expect(reply.previousSeq).toBe(1);
    expect(replyOf(reply).level).toBe(70);
    store.restore(replica);
    expect(store.reconcile(START, "p/a1", spend(2, 0)).duplicate).toBe(false);
    expect(store.size.members).toBe(1);
  });

  it("loses everything when cleared, and knows it from pods that remember", () => {
    const store = new EmbeddedStore();
    const { epoch } = store.reconcile(START, "p/a1", spend(1, 100));
    store.clear();
    const later = START + 1 * MS;
    const reply = store.reconcile(later, "p/a1", spend(2, 0, "k", { epoch }));
    expect(reply.epoch).not.toBe(epoch);
    expect(replyOf(reply).level).toBe(10);
  });

  it("holds a bounded number of keys, and forgets those that are full again soonest", () => {
    const store = new EmbeddedStore({ keysMax: 50 });
    store.reconcile(START, "p/a1", spend(1, 100, "busy"));
    for (let i = 0; i < 500; i += 1) store.reconcile(START, "p/a1", spend(i + 2, 1, `key-${i}`));
    expect(store.size.keys).toBe(50);
    expect(store.keyValue("api", "busy")).toBeDefined();
    expect(store.keyValue("api", "key-499")).toBeDefined();
  });

  it("holds no more keys where many pods have their sequence records among them", () => {
    const store = new EmbeddedStore({ keysMax: 50 });
    for (let i = 0; i < 100; i += 1) store.reconcile(START, `p/${i}`, spend(1, 1, "k"));
    for (let i = 0; i < 500; i += 1) store.reconcile(START, "p/0", spend(i + 2, 1, `key-${i}`));
    expect(store.size).toMatchObject({ keys: 50, batches: 100 });
  });

  it("drops what says nothing any more, a little with each batch", () => {
    const store = new EmbeddedStore();
    for (let i = 0; i < 100; i += 1) store.reconcile(START, `p/${i}`, spend(1, 1, `key-${i}`));
    expect(store.size).toMatchObject({ keys: 100, batches: 100 });
    const later = START + 1_200 * SECOND;
    for (let i = 0; i < 200; i += 1) store.reconcile(later, "p/new", spend(i + 1, 1));
    expect(store.size).toMatchObject({ keys: 1, batches: 1 });
  });

  it("keeps what still says something: a debt that takes longer to refill", () => {
    const store = new EmbeddedStore();
    const slow = limitOf({ name: "slow", tokens: 1, spanUs: 3_600 * SECOND, burst: 5 });
    const items = [{ limit: slow, key: "k", fields: { consumed: 4, demand: 4 } }];
    store.reconcile(START, "p/a1", batchOf(items));
    const later = START + 3_600 * SECOND;
    for (let i = 0; i < 50; i += 1) store.reconcile(later, "p/new", spend(i + 1, 1));
    const idle = batchOf([{ limit: slow, key: "k" }], { seq: 51 });
    expect(replyOf(store.reconcile(later, "p/new", idle)).level).toBe(2);
  });

  it("refuses a lane that it does not have", () => {
    const store = new EmbeddedStore({ lanes: 4 });
    expect(() => store.reconcile(START, "p/a1", spend(1, 1, "k", { lane: 4 }))).toThrow(
      "lane 4 of a store with 4 lanes",
    );
  });
});

describe("the embedded coordinator", () => {
  it("serves the pods of one process from one store", async () => {
    const store = new EmbeddedStore();
    const clock = new ManualClock();
    const [a, b] = ["pod-a", "pod-b"].map((id) =>
      createEmbeddedCoordinator(store, id, "a1", clock),
    );
    await a?.exchange(spend(1, 30));
    expect(replyOf((await b?.exchange(spend(1, 30))) ?? expect.fail()).level).toBe(40);
    await a?.heartbeat(TERMS);
    expect(await b?.heartbeat(TERMS)).toMatchObject({ pods: 2, silent: 0 });
    await a?.leave();
    expect(await b?.heartbeat(TERMS)).toMatchObject({ pods: 1, silent: 0 });
    clock.nowUs += 100 * MS;
    expect(replyOf((await b?.exchange(spend(2, 0))) ?? expect.fail()).level).toBe(50);
  });

  it("fails as unreachable once it is closed", async () => {
    const coordinator = createEmbeddedCoordinator(
      new EmbeddedStore(),
      "p",
      "a1",
      new ManualClock(),
    );
    await coordinator.close();
    await coordinator.close();
    await expect(coordinator.exchange(spend(1, 1))).rejects.toBeInstanceOf(CoordinatorError);
    await expect(coordinator.heartbeat(TERMS)).rejects.toMatchObject({ kind: "unreachable" });
  });
});

describe("expn", () => {
  it("is exp(-x) to nine digits, 1 for nothing and 0 for long ago", () => {
    for (let x = 0; x < 50; x += 0.37) expect(expn(x)).toBeCloseTo(Math.exp(-x), 9);
    expect([expn(0), expn(-1), expn(Number.NaN), expn(50), expn(1e300)]).toEqual([1, 1, 1, 0, 0]);
  });
});

describe("what was heard in a lane", () => {
  it("is the newest reply, told with the whole time since its call was sent", () => {
    const ear = new LaneEar();
    expect(ear.at(500)).toEqual({ epoch: 0, heardAtUs: 0, heardAgoUs: 0 });
    ear.heard(7, 1_000, 100);
    ear.heard(7, 900, 90);
    expect(ear.at(250.7)).toEqual({ epoch: 7, heardAtUs: 1_000, heardAgoUs: 150 });
    ear.heard(8, 10, 200);
    expect(ear.at(250)).toEqual({ epoch: 8, heardAtUs: 10, heardAgoUs: 50 });
  });
});
