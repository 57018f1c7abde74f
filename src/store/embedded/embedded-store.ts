/**
 * The store in process: the rules of `lua/` on maps, with time as an argument. It serves one pod
 * without Redis, and all pods of a simulated fleet.
 *
 * The server's time `rawUs` may step like Redis's own clock; each lane corrects it. A replica that
 * lags is a `snapshot`, a failover to it is `restore`, an emptied server is `clear`.
 */
import {
  type Batch,
  type BatchReply,
  type ByName,
  ENTRY_FIELDS,
  groupOfKey,
  REPLY,
  REPLY_FIELDS,
  type Roster,
} from "../../core/exchange.ts";
import {
  CALL,
  LEASE_REPLY,
  type StoreCall,
  type StoreCallReply,
  TAKE_REPLY,
} from "../../core/store-call.ts";
import { type DurationUs, type InstantUs, US_PER_MS, US_PER_SECOND } from "../../core/units.ts";
import type { HeartbeatTerms } from "../../ports/coordinator.ts";
import { partsOfCall } from "../call-shape.ts";
import type { Heard } from "../lane-ear.ts";
import { applyLease, applyTake, isStale, termsOfCall } from "./call-rule.ts";
import { FleetRecord } from "./fleet-record.ts";
import { KeyState } from "./key-state.ts";
import type { KeyTerms } from "./key-terms.ts";
import { type LaneRecord, openLane, packLane, unpackLane } from "./lane-record.ts";
import { type Kept, LaneStore } from "./lane-store.ts";
import { applyEntry, fullAtOf, isOfSameLimit, termsOfEntry } from "./reconcile-rule.ts";

/** A sequence record outlives any batch that a pod still repeats. */
const SEQ_LIFE_US = 600 * US_PER_SECOND;
/** Kept values looked at per entry of a batch, to drop those that have expired. */
const SWEEP_PER_ENTRY = 2;

export interface EmbeddedStoreOptions {
  /** Batch sequences; 1 unless a cluster is simulated. */
  readonly lanes?: number;
  /** Most keys held; beyond it those that are full again soonest are forgotten. None by default. */
  readonly keysMax?: number;
  /** Steps of the server's clock below this pass for delay. */
  readonly clockToleranceUs?: DurationUs;
}

/** A copy of everything stored. */
export interface EmbeddedSnapshot {
  readonly lanes: readonly LaneStore[];
  readonly fleet: FleetRecord;
}

/** What one heartbeat told. */
export interface HeartbeatReply extends Roster {
  readonly nowUs: InstantUs;
  readonly epoch: number;
}

export class EmbeddedStore {
  readonly lanes: number;
  readonly clockToleranceUs: DurationUs;
  private readonly keysPerLaneMax: number;
  /**
   * Names the server process, as Redis's run id does; 0 for not known. A failover changes it, which
   * is how strict limits learn that something may be missing.
   */
  runId = 1;
  private held: LaneStore[];
  private fleet = new FleetRecord();
  private readonly state = new KeyState();

  constructor(options: EmbeddedStoreOptions = {}) {
    this.lanes = options.lanes ?? 1;
    this.clockToleranceUs = options.clockToleranceUs ?? 100 * US_PER_MS;
    this.keysPerLaneMax = Math.ceil((options.keysMax ?? Number.POSITIVE_INFINITY) / this.lanes);
    this.held = emptyLanes(this.lanes);
  }

  /**
   * Applies a batch once; a repeated one changes nothing and is answered.
   *
   * @param rawUs - The server's own clock, whole us, above 0.
   * @param podRecordId - Tells sequences apart: pod and incarnation.
   */
  reconcile(rawUs: InstantUs, podRecordId: string, batch: ByName<Batch>): BatchReply {
    const lane = this.lane(batch.lane);
    const record = this.openLane(lane, rawUs, batch);
    const now = record.last;
    const { lastSeq, previousSeq } = readSeq(lane.batches.get(podRecordId), now, batch.seq);
    const repeated = lastSeq >= batch.seq;
    if (!repeated) {
      const numbers = new Float64Array([batch.seq, lastSeq, now]);
      lane.batches.set(podRecordId, { numbers, expiresAt: now + SEQ_LIFE_US });
    }
    const terms = { now, repeated, pods: batch.pods, hold: batch.hold };
    const count = Math.floor(batch.entries.length / ENTRY_FIELDS);
    const entries = new Float64Array(count * REPLY_FIELDS);
    const isKnown = batch.epoch === record.epoch;
    let limit = termsOfEntry(batch.entries, 0, batch.hold);
    for (let i = 0; i < count; i += 1) {
      const name = keyName(batch.limits[i]?.name ?? "", batch.keys[i] ?? "");
      if (i > 0 && !isOfSameLimit(batch.entries, i)) {
        limit = termsOfEntry(batch.entries, i, batch.hold);
      }
      const fullAt = isKnown ? fullAtOf(batch.entries, i, limit, record) : 0;
      entries[i * REPLY_FIELDS + REPLY.fault] = this.change(lane, name, record, limit, fullAt, () =>
        applyEntry(this.state, limit, terms, batch.entries, i, entries),
      );
    }
    lane.sweep(now, count * SWEEP_PER_ENTRY);
    return { nowUs: now, epoch: record.epoch, previousSeq, duplicate: repeated, entries };
  }

  /**
   * Decides a call. Unlike a batch it is never repeated by the caller.
   *
   * @param rawUs - The server's own clock, whole us, above 0.
   * @throws {RangeError} For a call that the engine should never have made.
   */
  call(rawUs: InstantUs, call: ByName<StoreCall>): StoreCallReply {
    const parts = partsOfCall(call, this.lanes);
    const lane = this.lane(call.lane);
    const record = this.openLane(lane, rawUs, call);
    const now = record.last;
    const { rawHeardUs, rawAgoUs } = call;
    const stale = isStale(record, rawHeardUs, rawAgoUs, this.clockToleranceUs);
    const found = { now, losses: record, isStale: stale };
    const isTake = call.kind === "take";
    const [apply, { fault: faultAt }] = isTake
      ? ([applyTake, TAKE_REPLY] as const)
      : ([applyLease, LEASE_REPLY] as const);
    const entries = new Float64Array(parts.at(-1)?.replyEnd ?? 0);
    for (const [i, { at, end, replyAt, replyEnd }] of parts.entries()) {
      const name = keyName(call.limits[i]?.name ?? "", call.keys[i] ?? "");
      const limit = termsOfCall(call.entries, at, call.hold);
      const entry = call.entries.subarray(at, end);
      const reply = entries.subarray(replyAt, replyEnd);
      const decide = (): void => apply(this.state, limit, found, entry, reply);
      const fullAt = call.epoch === record.epoch ? (entry[CALL.fullAt] ?? 0) : 0;
      reply[faultAt] = this.change(lane, name, record, limit, fullAt, decide);
    }
    lane.sweep(now, parts.length * SWEEP_PER_ENTRY);
    const rawNowUs = now - record.offset;
    return { nowUs: now, epoch: record.epoch, rawUs: rawNowUs, isStale: stale, entries };
  }

  /** Registers or renews a member, drops the dead, and counts; `heard` as in a batch of lane 0. */
  heartbeat(rawUs: InstantUs, member: string, terms: HeartbeatTerms, heard: Heard): HeartbeatReply {
    const record = this.openLane(this.lane(0), rawUs, heard, 0);
    const roster = this.fleet.heartbeat(record, member, terms);
    return { nowUs: record.last, epoch: record.epoch, ...roster };
  }

  leave(member: string): void {
    this.fleet.leave(member);
  }

  /** Loses everything, as an emptied or newly started server. */
  clear(): void {
    this.held = emptyLanes(this.lanes);
    this.fleet = new FleetRecord();
  }

  /** A copy of everything, as a replica holds it. */
  snapshot(): EmbeddedSnapshot {
    return { lanes: this.held.map((lane) => lane.copy()), fleet: this.fleet.copy() };
  }

  /** Puts a copy in force, as a failover to a replica does. The copy stays usable. */
  restore(snapshot: EmbeddedSnapshot): void {
    this.held = snapshot.lanes.map((lane) => lane.copy());
    this.fleet = snapshot.fleet.copy();
    this.runId += 1;
  }

  /** Keys, sequence records and members held, for tests and figures. */
  get size(): { readonly keys: number; readonly batches: number; readonly members: number } {
    let keys = 0;
    let batches = 0;
    for (const lane of this.held) {
      keys += lane.keys.size;
      batches += lane.batches.size;
    }
    return { keys, batches, members: this.fleet.size };
  }

  /** The stored doubles of a limit and key, as Redis would hold them. */
  keyValue(limitName: string, key: string): Float64Array | undefined {
    const lane = this.lane(groupOfKey(key) % this.lanes);
    return lane.keys.get(keyName(limitName, key))?.numbers;
  }

  /** Loses one key, as a server that evicts, or somebody who deletes it. */
  dropKey(limitName: string, key: string): void {
    this.lane(groupOfKey(key) % this.lanes).keys.delete(keyName(limitName, key));
  }

  /** Overwrites a stored value with anything, to damage it. */
  setKeyValue(limitName: string, key: string, numbers: Float64Array): void {
    const lane = this.lane(groupOfKey(key) % this.lanes);
    const expiresAt = Number.POSITIVE_INFINITY;
    lane.keys.set(keyName(limitName, key), { numbers, expiresAt });
  }

  /** The stored doubles of a lane's record. */
  laneValue(lane: number): Float64Array | undefined {
    const { record } = this.lane(lane);
    return record === undefined ? undefined : packLane(record);
  }

  /** Overwrites a lane's record with anything, to damage it. */
  setLaneValue(index: number, numbers: Float64Array): void {
    const lane = this.lane(index);
    lane.record = unpackLane(numbers);
    lane.damaged = lane.record === undefined;
  }

  /** The stored doubles of a sequence record. */
  batchValue(lane: number, podRecordId: string): Float64Array | undefined {
    return this.lane(lane).batches.get(podRecordId)?.numbers;
  }

  /** Loads, advances, changes and stores a key; returns what was wrong with it, 0 for nothing. */
  private change(
    lane: LaneStore,
    name: string,
    record: LaneRecord,
    limit: KeyTerms,
    fullAt: InstantUs,
    apply: () => void,
  ): number {
    const now = record.last;
    const kept = lane.keys.get(name) ?? { numbers: NOTHING, expiresAt: 0 };
    const stored = kept.numbers === NOTHING ? undefined : kept.numbers;
    const fault = this.state.open(stored, now, record, limit, fullAt);
    this.state.advance(now, limit);
    apply();
    const fields = this.state.fields(limit);
    if (kept.numbers.length !== fields) kept.numbers = new Float64Array(fields);
    this.state.write(kept.numbers);
    kept.expiresAt = now + this.state.expiryUs(limit);
    lane.keys.set(name, kept);
    lane.makeRoom(this.keysPerLaneMax, name);
    return fault;
  }

  private openLane(lane: LaneStore, rawUs: InstantUs, heard: Heard, run = this.runId): LaneRecord {
    const { epoch, heardAtUs, heardAgoUs } = heard;
    const toleranceUs = this.clockToleranceUs;
    const reference = { epoch, heardAtUs, heardAgoUs, toleranceUs, run };
    lane.record = openLane(lane.record, rawUs, reference, lane.damaged);
    lane.damaged = false;
    return lane.record;
  }

  private lane(index: number): LaneStore {
    const lane = this.held[index];
    if (lane === undefined) {
      throw new RangeError(`lane ${index} of a store with ${this.lanes} lanes`);
    }
    return lane;
  }
}

const NOTHING = new Float64Array(0);

/** Limit names hold no NUL, so no two pairs share a name. */
function keyName(limitName: string, key: string): string {
  return `${limitName}\0${key}`;
}

function readSeq(
  kept: Kept | undefined,
  now: InstantUs,
  seq: number,
): { lastSeq: number; previousSeq: number } {
  const [last = 0, previous = 0, at = 0] = kept?.numbers ?? NOTHING;
  if (last < 1 || now - at > SEQ_LIFE_US) return { lastSeq: 0, previousSeq: 0 };
  return { lastSeq: last, previousSeq: last === seq ? previous : last };
}

function emptyLanes(count: number): LaneStore[] {
  return Array.from({ length: count }, () => new LaneStore());
}
