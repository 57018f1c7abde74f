/**
 * The coordinator on Redis: batches, heartbeats, leaves become script calls, replies are checked.
 *
 * A single server (or one behind Sentinel) has four lanes, so that four batches may be under way
 * and each still carries keys of sixteen groups; a cluster has one lane per group, since all keys
 * of a call must lie in one slot.
 */
import { randomInt } from "node:crypto";
import {
  BATCH_ENTRIES_MAX,
  type Batch,
  type BatchReply,
  ENTRY_FIELDS,
  GROUPS,
  groupOfKey,
  type Roster,
} from "../../core/exchange.ts";
import type { StoreCall, StoreCallReply } from "../../core/store-call.ts";
import { type DurationUs, type InstantUs, US_PER_MS } from "../../core/units.ts";
import type { Clock } from "../../ports/clock.ts";
import { type Coordinator, type HeartbeatTerms, LARGE_COSTS_MAX } from "../../ports/coordinator.ts";
import type { Random } from "../../ports/random.ts";
import { partsOfCall } from "../call-shape.ts";
import { LaneEar } from "../lane-ear.ts";
import type { RedisAccess } from "./client.ts";
import { type ConnectionChange, RedisConnection } from "./connection.ts";
import { KeyNames } from "./keys.ts";
import { decodeBatchReply, decodeCallReply, decodeJoinReply, packDoubles } from "./replies.ts";

const SINGLE_LANES = 4;
/** Steps of Redis's clock below this pass for delay. */
const CLOCK_TOLERANCE_MIN_US = 100 * US_PER_MS;
/**
 * A call that decides is waited for until its connection is given up: the engine has given up on it
 * long before, but what a late answer brings must go back.
 */
const LATE_REPLY_MS = 1_500;
/** Tells the scripts to ask the server for its time. */
const SERVER_TIME = -1;

export interface RedisCoordinatorOptions extends RedisAccess {
  readonly fleet: string;
  /** Name of the pod, any non-empty text. */
  readonly podId: string;
  /** Tells processes of one pod apart: hexadecimal digits, fresh at each start. */
  readonly incarnation: string;
  readonly commandTimeoutUs: DurationUs;
  readonly clock: Clock;
  readonly random?: Random;
  /** The connection came up or went down; told once per change. */
  readonly onConnection?: (change: ConnectionChange) => void;
  /** The server evicts by this policy when it is full; told after each connect. */
  readonly onEviction?: (policy: string) => void;
  /** Time to use in place of Redis's own, for tests; whole us. */
  readonly storeTime?: () => InstantUs;
  /** Number to use in place of the server's run id, for tests. */
  readonly storeRun?: () => number;
}

export interface RedisCoordinator extends Coordinator {
  /** Script calls sent so far. */
  readonly calls: number;
}

/**
 * Begins to connect and returns at once; calls fail with `unreachable` until there is a connection.
 *
 * @throws {RangeError} When pod id or incarnation cannot name a member.
 * @throws {Error} When a password or TLS file cannot be read.
 */
export function createRedisCoordinator(options: RedisCoordinatorOptions): RedisCoordinator {
  return new ScriptCoordinator(options);
}

class ScriptCoordinator implements RedisCoordinator {
  readonly lanes: number;
  private readonly options: RedisCoordinatorOptions;
  private readonly connection: RedisConnection;
  private readonly names: KeyNames;
  private readonly member: string;
  private readonly toleranceUs: DurationUs;
  /** What was heard in lane 0, whose clock scores heartbeats. */
  private readonly ear = new LaneEar();

  constructor(options: RedisCoordinatorOptions) {
    requireMember(options);
    this.options = options;
    this.lanes = options.topology.kind === "cluster" ? GROUPS : SINGLE_LANES;
    this.names = new KeyNames(options.fleet, this.lanes);
    this.member = `${options.podId}/${options.incarnation}`;
    this.toleranceUs = Math.max(CLOCK_TOLERANCE_MIN_US, 2 * options.commandTimeoutUs);
    this.connection = new RedisConnection({
      access: options,
      commandTimeoutUs: options.commandTimeoutUs,
      random: options.random ?? cryptoRandom,
      onConnection: options.onConnection ?? (() => {}),
      onEviction: options.onEviction ?? (() => {}),
    });
  }

  get calls(): number {
    return this.connection.calls;
  }

  async exchange(batch: Batch): Promise<BatchReply> {
    const count = this.requireBatch(batch);
    const { podId, incarnation, clock } = this.options;
    const { lane, seq, epoch, heardAtUs, pods, hold } = batch;
    const keys = [this.names.meta(lane), this.names.sequence(lane, podId, incarnation)];
    for (let i = 0; i < count; i += 1) {
      keys.push(this.names.state(batch.limits[i]?.name ?? "", batch.keys[i] ?? ""));
    }
    const ago = Math.floor(batch.heardAgoUs);
    const clockPart = [this.time(), seq, epoch, heardAtUs, ago, this.toleranceUs];
    const header = [...clockPart, this.run(), pods, hold];
    const sentAt = clock.monotonicUs();
    const raw = await this.connection.run("reconcile", keys, [
      packDoubles(requireFinite(header)),
      packDoubles(batch.entries),
    ]);
    const reply = decodeBatchReply(raw, count);
    if (lane === 0) this.ear.heard(reply.epoch, reply.nowUs, sentAt);
    return reply;
  }

  async call(call: StoreCall): Promise<StoreCallReply> {
    const parts = partsOfCall(call, this.lanes);
    const { kind, lane, epoch, heardAtUs, hold, rawHeardUs } = call;
    const ago = Math.floor(call.heardAgoUs);
    const clockPart = [this.time(), epoch, heardAtUs, ago, this.toleranceUs];
    const rawPart = [rawHeardUs, Math.floor(call.rawAgoUs)];
    const header = requireFinite([...clockPart, this.run(), hold, ...rawPart]);
    const keys = [this.names.meta(lane)];
    for (const [i, key] of call.keys.entries()) {
      keys.push(this.names.state(call.limits[i]?.name ?? "", key));
    }
    const sentAt = this.options.clock.monotonicUs();
    const args = [packDoubles(header), packDoubles(call.entries)];
    const raw = await this.connection.run(kind, keys, args, LATE_REPLY_MS);
    const reply = decodeCallReply(raw, call, parts);
    if (lane === 0) this.ear.heard(reply.epoch, reply.nowUs, sentAt);
    return reply;
  }

  async heartbeat(terms: HeartbeatTerms): Promise<Roster> {
    const sentAt = this.options.clock.monotonicUs();
    const { epoch, heardAtUs, heardAgoUs } = this.ear.at(sentAt);
    const { timeoutUs, silentAfterUs, largeCosts } = terms;
    const clockPart = [this.time(), epoch, heardAtUs, heardAgoUs, this.toleranceUs];
    const header = requireFinite([...clockPart, timeoutUs, silentAfterUs]);
    const keys = [this.names.meta(0), this.names.pods(), this.names.largeCosts()];
    const costs = largeCosts.slice(0, LARGE_COSTS_MAX).map((name) => `${name}\n`);
    const args = [packDoubles(header), this.member, costs.join("")];
    const told = decodeJoinReply(await this.connection.run("join", keys, args));
    const { nowUs, epoch: newEpoch, ...roster } = told;
    this.ear.heard(newEpoch, nowUs, sentAt);
    return roster;
  }

  async leave(): Promise<void> {
    await this.connection.run("leave", [this.names.pods()], [this.member]);
  }

  close(): Promise<void> {
    return this.connection.close();
  }

  private time(): number {
    return this.options.storeTime?.() ?? SERVER_TIME;
  }

  private run(): number {
    return this.options.storeRun?.() ?? this.connection.serverRun;
  }

  /**
   * A script must not fail half way, so what it gets is checked here.
   *
   * @throws {RangeError} For a batch that the engine should never have made.
   */
  private requireBatch(batch: Batch): number {
    const count = batch.keys.length;
    if (count > BATCH_ENTRIES_MAX) throw new RangeError(`a batch of ${count} entries`);
    if (batch.limits.length !== count || batch.entries.length !== count * ENTRY_FIELDS) {
      const { limits, entries } = batch;
      throw new RangeError(
        `a batch of ${count} keys, ${limits.length} limits and ${entries.length} numbers`,
      );
    }
    if (!Number.isSafeInteger(batch.seq) || batch.seq < 1) {
      throw new RangeError(`a batch with sequence number ${batch.seq}`);
    }
    for (const key of batch.keys) {
      if (groupOfKey(key) % this.lanes !== batch.lane) {
        throw new RangeError(`a key of group ${groupOfKey(key)} in a batch of lane ${batch.lane}`);
      }
    }
    requireFinite(batch.entries);
    return count;
  }
}

function requireFinite<T extends Iterable<number>>(numbers: T): T {
  for (const x of numbers) {
    if (!Number.isFinite(x)) throw new RangeError(`the number ${x} in a call of the store`);
  }
  return numbers;
}

function requireMember({ podId, incarnation }: RedisCoordinatorOptions): void {
  if (podId === "") throw new RangeError("the pod id must not be empty");
  if (!/^[0-9a-f]+$/i.test(incarnation)) {
    throw new RangeError(`an incarnation is hexadecimal digits, got ${incarnation}`);
  }
}

/** Only spreads reconnects. */
const cryptoRandom: Random = { draw: () => randomInt(2 ** 32) / 2 ** 32 };
