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
  ENTRY_FIELDS,
  groupOfKey,
  REPLY_FIELDS,
  type Roster,
} from "../../core/exchange.ts";
import { type DurationUs, type InstantUs, US_PER_MS, US_PER_SECOND } from "../../core/units.ts";
import type { HeartbeatTerms } from "../../ports/coordinator.ts";
import type { Heard } from "../lane-ear.ts";
import { KEY_FIELDS, KeyState } from "./key-state.ts";
import { type LaneRecord, openLane, packLane, unpackLane } from "./lane-record.ts";
import { applyEntry, termsOfEntry } from "./reconcile-rule.ts";

/** A sequence record outlives any batch that a pod still repeats. */
const SEQ_LIFE_US = 600 * US_PER_SECOND;
/** Kept values looked at per entry of a batch, to drop those that have expired. */
const SWEEP_PER_ENTRY = 2;

/** A stored value and the lane's time after which it says nothing any more. */
interface Kept {
  numbers: Float64Array;
  expiresAt: InstantUs;
}

interface Lane {
  record: LaneRecord | undefined;
  /** The record was overwritten with what cannot be one. */
  damaged: boolean;
  /** By limit and key. */
  keys: Map<string, Kept>;
  /** By pod record: last sequence number, the one before, when. */
  batches: Map<string, Kept>;
}

export interface EmbeddedStoreOptions {
  /** Batch sequences; 1 unless a cluster is simulated. */
  readonly lanes?: number;
  /** Steps of the server's clock below this pass for delay. */
  readonly clockToleranceUs?: DurationUs;
}

/** A copy of everything stored. */
export interface EmbeddedSnapshot {
  readonly lanes: readonly Lane[];
  readonly members: ReadonlyMap<string, InstantUs>;
}

/** What one heartbeat told. */
export interface HeartbeatReply extends Roster {
  readonly nowUs: InstantUs;
  readonly epoch: number;
}

export class EmbeddedStore {
  readonly lanes: number;
  readonly clockToleranceUs: DurationUs;
  private held: Lane[];
  private members = new Map<string, InstantUs>();
  private readonly state = new KeyState();
  /** Where the sweep of each lane goes on. */
  private sweeps: (Iterator<[string, Kept]> | undefined)[] = [];

  constructor(options: EmbeddedStoreOptions = {}) {
    this.lanes = options.lanes ?? 1;
    this.clockToleranceUs = options.clockToleranceUs ?? 100 * US_PER_MS;
    this.held = emptyLanes(this.lanes);
  }

  /**
   * Applies a batch once; a repeated one changes nothing and is answered.
   *
   * @param rawUs - The server's own clock, whole us, above 0.
   * @param podRecordId - Tells sequences apart: pod and incarnation.
   */
  reconcile(rawUs: InstantUs, podRecordId: string, batch: Batch): BatchReply {
    const lane = this.lane(batch.lane);
    const record = this.openLane(lane, rawUs, batch);
    const now = record.last;
    const { lastSeq, previousSeq } = readSeq(lane.batches.get(podRecordId), now, batch.seq);
    const repeated = lastSeq >= batch.seq;
    if (!repeated) {
      const numbers = new Float64Array([batch.seq, lastSeq, now]);
      lane.batches.set(podRecordId, { numbers, expiresAt: now + SEQ_LIFE_US });
    }
    const { lostAt } = record;
    const terms = { now, lostAt, repeated, pods: batch.pods, hold: batch.hold };
    const count = Math.floor(batch.entries.length / ENTRY_FIELDS);
    const entries = new Float64Array(count * REPLY_FIELDS);
    for (let i = 0; i < count; i += 1) {
      const key = batch.keys[i] ?? "";
      const name = keyName(batch.limits[i]?.name ?? "", key);
      const limit = termsOfEntry(batch.entries, i, batch.hold);
      const kept = lane.keys.get(name) ?? { numbers: NOTHING, expiresAt: 0 };
      const stored = kept.numbers === NOTHING ? undefined : kept.numbers;
      const damaged = this.state.open(stored, now, lostAt, limit);
      this.state.advance(now, limit);
      applyEntry(this.state, limit, terms, batch.entries, i, entries);
      if (kept.numbers.length !== KEY_FIELDS) kept.numbers = new Float64Array(KEY_FIELDS);
      this.state.write(kept.numbers);
      kept.expiresAt = now + this.state.expiryUs(limit);
      lane.keys.set(name, kept);
      entries[(i + 1) * REPLY_FIELDS - 1] = damaged;
    }
    this.sweep(batch.lane, now, count * SWEEP_PER_ENTRY);
    return { nowUs: now, epoch: record.epoch, previousSeq, duplicate: repeated, entries };
  }

  /** Registers or renews a member, drops the dead, and counts; `heard` as in a batch of lane 0. */
  heartbeat(rawUs: InstantUs, member: string, terms: HeartbeatTerms, heard: Heard): HeartbeatReply {
    const record = this.openLane(this.lane(0), rawUs, heard);
    const now = record.last;
    this.members.set(member, now);
    let silent = 0;
    for (const [other, heardAt] of this.members) {
      if (heardAt <= now - terms.timeoutUs) {
        this.members.delete(other);
        continue;
      }
      // Heard in the future: the lane's record was lost and with it the clock.
      if (heardAt > now) this.members.set(other, now);
      if (Math.min(heardAt, now) <= now - terms.silentAfterUs) silent += 1;
    }
    record.members = this.members.size;
    return { nowUs: now, epoch: record.epoch, pods: this.members.size, silent };
  }

  leave(member: string): void {
    this.members.delete(member);
  }

  /** Loses everything, as an emptied or newly started server. */
  clear(): void {
    this.held = emptyLanes(this.lanes);
    this.members = new Map();
    this.sweeps = [];
  }

  /** A copy of everything, as a replica holds it. */
  snapshot(): EmbeddedSnapshot {
    return { lanes: this.held.map(copyLane), members: new Map(this.members) };
  }

  /** Puts a copy in force, as a failover to a replica does. The copy stays usable. */
  restore(snapshot: EmbeddedSnapshot): void {
    this.held = snapshot.lanes.map(copyLane);
    this.members = new Map(snapshot.members);
    this.sweeps = [];
  }

  /** Keys, sequence records and members held, for tests and figures. */
  get size(): { readonly keys: number; readonly batches: number; readonly members: number } {
    let keys = 0;
    let batches = 0;
    for (const lane of this.held) {
      keys += lane.keys.size;
      batches += lane.batches.size;
    }
    return { keys, batches, members: this.members.size };
  }

  /** The stored doubles of a limit and key, as Redis would hold them. */
  keyValue(limitName: string, key: string): Float64Array | undefined {
    const lane = this.lane(groupOfKey(key) % this.lanes);
    return lane.keys.get(keyName(limitName, key))?.numbers;
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

  private openLane(lane: Lane, rawUs: InstantUs, heard: Heard): LaneRecord {
    const { epoch, heardAtUs, heardAgoUs } = heard;
    const toleranceUs = this.clockToleranceUs;
    const reference = { epoch, heardAtUs, heardAgoUs, toleranceUs };
    lane.record = openLane(lane.record, rawUs, reference, lane.damaged);
    lane.damaged = false;
    return lane.record;
  }

  private lane(index: number): Lane {
    const lane = this.held[index];
    if (lane === undefined) {
      throw new RangeError(`lane ${index} of a store with ${this.lanes} lanes`);
    }
    return lane;
  }

  /** Drops what has expired, a few values at each batch, so that a batch never waits for it. */
  private sweep(index: number, now: InstantUs, steps: number): void {
    const lane = this.lane(index);
    let walk = this.sweeps[index] ?? everything(lane);
    for (let i = 0; i <= steps; i += 1) {
      const next = walk.next();
      if (next.done) {
        walk = everything(lane);
        break;
      }
      const [name, kept] = next.value;
      if (now <= kept.expiresAt) continue;
      if (lane.keys.get(name) === kept) lane.keys.delete(name);
      else if (lane.batches.get(name) === kept) lane.batches.delete(name);
    }
    this.sweeps[index] = walk;
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

function* everything(lane: Lane): Generator<[string, Kept], undefined> {
  yield* lane.keys;
  yield* lane.batches;
}

function emptyLanes(count: number): Lane[] {
  return Array.from({ length: count }, () => ({
    record: undefined,
    damaged: false,
    keys: new Map(),
    batches: new Map(),
  }));
}

function copyLane(lane: Lane): Lane {
  return {
    record: lane.record === undefined ? undefined : { ...lane.record },
    damaged: lane.damaged,
    keys: copyKept(lane.keys),
    batches: copyKept(lane.batches),
  };
}

function copyKept(kept: ReadonlyMap<string, Kept>): Map<string, Kept> {
  const copy = new Map<string, Kept>();
  for (const [name, { numbers, expiresAt }] of kept) {
    copy.set(name, { numbers: numbers.slice(), expiresAt });
  }
  return copy;
}
