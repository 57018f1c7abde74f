/**
 * The model of the store's model test: the same calls go to Redis with our scripts and to the
 * embedded store, with the same explicit times, and everything that comes out must be equal to the
 * last bit: replies, key states, lane records, sequence records.
 */
import type { Redis } from "ioredis";
import { expect } from "vitest";
import type { Batch, BatchReply, Roster } from "../../src/core/exchange.ts";
import { groupOfKey } from "../../src/core/exchange.ts";
import type { Limit } from "../../src/core/limit.ts";
import type { StoreCall, StoreCallReply } from "../../src/core/store-call.ts";
import type { Coordinator } from "../../src/ports/coordinator.ts";
import { createEmbeddedCoordinator } from "../../src/store/embedded/embedded-coordinator.ts";
import { EmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { KEY_FIELDS } from "../../src/store/embedded/key-state.ts";
import { LANE_FIELDS } from "../../src/store/embedded/lane-record.ts";
import { KeyNames } from "../../src/store/redis/keys.ts";
import { unpackDoubles } from "../../src/store/redis/replies.ts";
import type { RedisServer } from "../support/redis-server.ts";
import type { CallBody } from "./asking.ts";
import { accessTo, connected } from "./connected.ts";
import { type Damage, numbersOf } from "./damage.ts";
import { batchOf, type EntryFields, type Item, ManualClock, MS, SECOND } from "./pod.ts";
import { bytesOf, hex } from "./stored-bytes.ts";

export const LANES = 4;
const FLEET = "model";
const NAMES = new KeyNames(FLEET, LANES);

interface Process {
  readonly podId: string;
  readonly incarnation: string;
  readonly redis: Coordinator;
  readonly embedded: Coordinator;
  readonly seqs: number[];
  readonly sent: (Batch | undefined)[];
  readonly heard: { epoch: number; nowUs: number; rawUs: number; sentAt: number }[];
}

export interface Planted {
  /** Of the state, from the lane's time on. */
  readonly tUs: number;
  /** Parts of the burst in the three lease slots. */
  readonly leases: readonly number[];
  /** Part of the burst spent on top. */
  readonly spent: number;
  readonly stock: number;
  /** Age of the ledger slot. */
  readonly slotUs: number;
  readonly ticketUs: number;
}

export class BothStores {
  readonly clock: ManualClock = new ManualClock();
  private rawUs = 1_700_000_000 * SECOND;
  private readonly server: RedisServer;
  private readonly admin: Redis;
  private readonly store = new EmbeddedStore({ lanes: LANES, clockToleranceUs: 2 * SECOND });
  private readonly processes = new Map<string, Process>();
  /** Limit and key of everything ever sent, to be compared at the end. */
  private readonly touched = new Map<string, { limit: Limit; key: string }>();

  constructor(server: RedisServer, admin: Redis) {
    this.server = server;
    this.admin = admin;
  }

  /** Lets time pass, and Redis's own clock step. */
  pass(us: number, stepUs: number): void {
    this.clock.nowUs += us;
    this.rawUs += us + stepUs;
  }

  /** Sends a new batch of a process; returns the reply that both gave. */
  async batch(
    podId: string,
    incarnation: string,
    lane: number,
    items: readonly Item[],
    rest: { pods: number; hold: number; first?: boolean },
  ): Promise<BatchReply> {
    const process = await this.process(podId, incarnation);
    const heard = process.heard[lane];
    const sentAt = this.clock.nowUs;
    const known = heard !== undefined && rest.first !== true;
    const seq = (process.seqs[lane] ?? 0) + 1;
    process.seqs[lane] = seq;
    const batch = batchOf(items.map(withReplyTime(known ? heard.nowUs : 0)), {
      lane,
      seq,
      pods: rest.pods,
      hold: rest.hold,
      epoch: known ? heard.epoch : 0,
      heardAtUs: known ? heard.nowUs : 0,
      heardAgoUs: known ? sentAt - heard.sentAt : 0,
    });
    process.sent[lane] = batch;
    return this.send(process, batch);
  }

  /** Sends the last batch of a lane again, or one before it. */
  async again(podId: string, incarnation: string, lane: number, older: boolean): Promise<void> {
    const process = await this.process(podId, incarnation);
    const batch = process.sent[lane];
    if (batch === undefined || (older && batch.seq === 1)) return;
    const reply = await this.send(process, older ? { ...batch, seq: batch.seq - 1 } : batch);
    for (let i = 0; i < batch.keys.length; i += 1) {
      // A batch that was lost with the data is new to the store, and nothing else is.
      if (reply.duplicate) expect(reply.entries[i * 11 + 4]).toBe(0);
    }
  }

  /** Sends a call; `describe` may use the time of the last reply, 0 for none. */
  async call(
    podId: string,
    incarnation: string,
    lane: number,
    describe: (heardAtUs: number) => CallBody,
    rest: { hold: number; first?: boolean } = { hold: 0 },
  ): Promise<StoreCallReply> {
    const process = await this.process(podId, incarnation);
    const heard = rest.first === true ? undefined : process.heard[lane];
    const sentAt = this.clock.nowUs;
    const agoUs = heard === undefined ? 0 : sentAt - heard.sentAt;
    const call: StoreCall = {
      ...describe(heard?.nowUs ?? 0),
      id: 1,
      lane,
      hold: rest.hold,
      epoch: heard?.epoch ?? 0,
      heardAtUs: heard?.nowUs ?? 0,
      heardAgoUs: agoUs,
      rawHeardUs: heard?.rawUs ?? 0,
      rawAgoUs: agoUs,
    };
    const reply = await process.redis.call(call);
    const expected = await process.embedded.call(call);
    expect(bytesOf(reply.entries)).toBe(bytesOf(expected.entries));
    expect({ ...reply, entries: 0 }).toEqual({ ...expected, entries: 0 });
    process.heard[lane] = { ...reply, sentAt };
    await this.compareTouched(call);
    return reply;
  }

  /** Another server process takes over; 0 for one that does not tell its run id. */
  changeRun(runId: number): void {
    this.store.runId = runId;
  }

  /** One heartbeat and what both told. */
  async roster(
    podId: string,
    incarnation: string,
    largeCosts: readonly string[] = [],
  ): Promise<Roster> {
    const { redis, embedded } = await this.process(podId, incarnation);
    const terms = { timeoutUs: 5 * SECOND, silentAfterUs: 2_500 * MS, largeCosts };
    const roster = await redis.heartbeat(terms);
    expect(roster).toEqual(await embedded.heartbeat(terms));
    await this.compareLane(0);
    return roster;
  }

  laneOf(key: string): number {
    return laneOf(key);
  }

  async leave(podId: string, incarnation: string): Promise<void> {
    const { redis, embedded } = await this.process(podId, incarnation);
    await redis.leave();
    await embedded.leave();
  }

  async flush(): Promise<void> {
    await this.admin.flushall();
    this.store.clear();
  }

  /** Loses one key, as a server that evicts does. */
  async drop(limit: Limit, key: string): Promise<void> {
    await this.admin.del(NAMES.state(limit.name, key));
    this.store.dropKey(limit.name, key);
  }

  /** Writes the state that another mode could have left: leases and tickets out, any instant. */
  async plant(limit: Limit, key: string, planted: Planted): Promise<void> {
    const { refill, period, tickUs, burst } = limit;
    const now = this.store.laneValue(laneOf(key))?.[4] ?? this.rawUs;
    const t = Math.floor(Math.max(0, now + planted.tUs) / tickUs) * tickUs;
    const leased = planted.leases.map((part) => Math.floor(part * burst));
    const out = leased.reduce((sum, tokens) => sum + tokens, 0);
    const deficit = (out + Math.floor(planted.spent * burst)) * period;
    const estimates = [planted.spent * 50, planted.spent * 20, 1.5];
    const ledger = [planted.stock, planted.stock + 1, t - planted.slotUs, 300 * MS];
    const numbers = new Float64Array([refill, period, burst, deficit, t, ...estimates, ...ledger]);
    const takes = [planted.stock, 2 * planted.stock, Math.max(0, t - planted.slotUs)];
    const state = Float64Array.of(...numbers, t + planted.ticketUs, ...leased, ...takes);
    await this.admin.set(NAMES.state(limit.name, key), Buffer.from(state.buffer), "PX", 60_000);
    this.store.setKeyValue(limit.name, key, state);
  }

  async damageKey(limit: Limit, key: string, damage: Damage): Promise<void> {
    await this.overwrite(NAMES.state(limit.name, key), damage, KEY_FIELDS);
    this.store.setKeyValue(limit.name, key, numbersOf(damage, KEY_FIELDS));
  }

  async damageLane(lane: number, damage: Damage): Promise<void> {
    await this.overwrite(NAMES.meta(lane), damage, LANE_FIELDS);
    this.store.setLaneValue(lane, numbersOf(damage, LANE_FIELDS));
  }

  /** Compares everything, and demands an expiry of every key. */
  async compareAll(): Promise<void> {
    for (const { limit, key } of this.touched.values()) await this.compareKey(limit, key);
    for (let lane = 0; lane < LANES; lane += 1) await this.compareLane(lane);
    for (const { podId, incarnation } of this.processes.values()) {
      for (let lane = 0; lane < LANES; lane += 1) {
        const stored = await this.admin.getBuffer(NAMES.sequence(lane, podId, incarnation));
        expect(bytesOf(this.store.batchValue(lane, `${podId}/${incarnation}`))).toBe(hex(stored));
      }
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.processes.values()].map(({ redis }) => redis.close()));
  }

  private async send(process: Process, batch: Batch): Promise<BatchReply> {
    const sentAt = this.clock.nowUs;
    const reply = await process.redis.exchange(batch);
    const expected = await process.embedded.exchange(batch);
    expect(bytesOf(reply.entries)).toBe(bytesOf(expected.entries));
    expect({ ...reply, entries: 0 }).toEqual({ ...expected, entries: 0 });
    process.heard[batch.lane] = { ...reply, rawUs: 0, sentAt };
    await this.compareTouched(batch);
    return reply;
  }

  private async compareTouched(sent: Pick<Batch, "keys" | "limits" | "lane">): Promise<void> {
    for (const [i, key] of sent.keys.entries()) {
      const limit = sent.limits[i] as Limit;
      this.touched.set(`${limit.name}\0${key}`, { limit, key });
      await this.compareKey(limit, key);
    }
    await this.compareLane(sent.lane);
  }

  private async compareKey(limit: Limit, key: string): Promise<void> {
    const name = NAMES.state(limit.name, key);
    const stored = await this.admin.getBuffer(name).catch(() => null);
    const kept = this.store.keyValue(limit.name, key);
    if (kept === undefined || kept.length < KEY_FIELDS || !kept.every((x) => x >= 0)) return;
    expect(hex(stored)).toBe(bytesOf(kept));
    if (stored !== null) expect(Math.min(...unpackDoubles(stored))).toBeGreaterThanOrEqual(0);
  }

  private async compareLane(lane: number): Promise<void> {
    const kept = this.store.laneValue(lane);
    if (kept === undefined) return;
    expect(hex(await this.admin.getBuffer(NAMES.meta(lane)))).toBe(bytesOf(kept));
  }

  private async overwrite(name: string, damage: Damage, count: number): Promise<void> {
    await this.admin.del(name);
    if (damage === "list") await this.admin.rpush(name, "x");
    else if (damage === "hash") await this.admin.hset(name, "consumed", "nan");
    else if (damage === "text") await this.admin.set(name, "abc");
    else await this.admin.set(name, Buffer.from(numbersOf(damage, count).buffer));
    await this.admin.pexpire(name, 60_000);
  }

  private async process(podId: string, incarnation: string): Promise<Process> {
    const name = `${podId}/${incarnation}`;
    const known = this.processes.get(name);
    if (known !== undefined) return known;
    const { clock, store } = this;
    const storeTime = (): number => this.rawUs;
    const storeRun = (): number => store.runId;
    const identity = { fleet: FLEET, podId, incarnation, clock, storeTime, storeRun };
    const redis = await connected({ ...accessTo(this.server), ...identity });
    const embedded = createEmbeddedCoordinator(store, podId, incarnation, clock, storeTime);
    const made = { podId, incarnation, redis, embedded, seqs: [], sent: [], heard: [] };
    this.processes.set(name, made);
    return made;
  }
}

function withReplyTime(nowUs: number): (item: Item) => Item {
  return (item) => {
    const fields: EntryFields = { ...item.fields };
    // Half of the entries have been heard before; the others are first reports.
    if ((fields.repliedAt ?? 0) > 0) fields.repliedAt = nowUs;
    if (fields.fullAt) fields.fullAt += nowUs;
    return { ...item, fields };
  };
}

export function laneOf(key: string): number {
  return groupOfKey(key) % LANES;
}
