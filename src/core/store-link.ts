/**
 * The pod's line to the store: cuts due rows into batches, sends each again until it is answered, and
 * applies the replies. It never admits a token; decisions are made in `pod-limiter.ts`.
 */
import { type BucketTable, DUE, FALLBACK, HELD, IN_FLIGHT, USED_AT } from "./bucket-table.ts";
import {
  BATCH_ENTRIES_MAX,
  type Batch,
  type BatchReply,
  ENTRY,
  ENTRY_FIELDS,
  REPLY,
  REPLY_FIELDS,
} from "./exchange.ts";
import type { FallbackBuckets } from "./fallback-buckets.ts";
import type { HeldCheck, HeldChecks } from "./held-checks.ts";
import type { HybridBuckets } from "./hybrid.ts";
import { applyReply, cutRow, orphanEntry } from "./hybrid-exchange.ts";
import { FLOW, FLOW_AT, ISOLATED_AT, REPLIED_AT, UNREPORTED } from "./hybrid-row.ts";
import { BATCH_LIFE_US, type CutBatch, type Lane, type Orphan, STALE_US } from "./lane.ts";
import type { RowSchedule } from "./row-schedule.ts";
import type { StoreHealth } from "./store-health.ts";
import type { DurationUs, InstantUs, Tokens } from "./units.ts";

/** Most batches unanswered at once over all lanes. */
const IN_FLIGHT_MAX = 8;
/** Most reports of evicted rows per lane; beyond it the oldest is dropped and counted as lost. */
const ORPHANS_MAX = 10_000;
/** A reply older than this many intervals grants nothing: the pod has gone on without it. */
const LATE_INTERVALS = 5;

export interface StoreLinkParts {
  readonly table: BucketTable;
  readonly hybrid: HybridBuckets;
  readonly fallback: FallbackBuckets;
  readonly held: HeldChecks;
  readonly lanes: readonly Lane[];
  readonly schedule: RowSchedule;
  readonly health: StoreHealth;
  readonly commandTimeoutUs: DurationUs;
}

export class StoreLink {
  readonly #parts: StoreLinkParts;
  #leaving = false;
  #plannedAt: InstantUs = Number.POSITIVE_INFINITY;
  /** Tokens that were admitted and will never be reported. */
  lost: Tokens = 0;

  constructor(parts: StoreLinkParts) {
    this.#parts = parts;
  }

  /** When `tick` has something to do. */
  get wakeAt(): InstantUs {
    const { schedule, lanes } = this.#parts;
    if (schedule.isEager) return Number.NEGATIVE_INFINITY;
    let at = schedule.nextAt;
    const hasRoom = this.#inFlight() < IN_FLIGHT_MAX;
    for (const lane of lanes) {
      at = Math.min(at, lane.actAt);
      if (hasRoom && lane.phase === "free" && lane.hasDue) at = Math.min(at, lane.quietUntil);
    }
    return at;
  }

  /** Nothing is unreported and nothing unanswered. */
  get isSettled(): boolean {
    const { table, lanes } = this.#parts;
    if (lanes.some((lane) => lane.phase !== "free" || lane.hasDue)) return false;
    for (let slot = 0; slot < table.rows; slot += 1) {
      if (table.isLive(slot) && table.cells[table.at(slot) + UNREPORTED] !== 0) return false;
    }
    return true;
  }

  /** The lane that carries a group's keys. */
  laneOfGroup(group: number): Lane {
    return this.#parts.lanes[group % this.#parts.lanes.length] as Lane;
  }

  get isLeaving(): boolean {
    return this.#leaving;
  }

  /** From now on stock is given back with each report; everything that is owed becomes due. */
  beginLeave(): void {
    this.#leaving = true;
    const { table, schedule } = this.#parts;
    for (let slot = 0; slot < table.rows; slot += 1) {
      if (table.isLive(slot) && this.#owes(slot)) schedule.markDue(slot);
    }
  }

  /** Keeps the report of a row that is about to be removed. */
  orphan(slot: number, now: InstantUs): void {
    if (!this.#owes(slot)) return;
    const { table, schedule } = this.#parts;
    const lane = schedule.laneOf(slot);
    const entry = new Float64Array(ENTRY_FIELDS);
    orphanEntry(table, slot, now, entry);
    if (lane.orphans.length >= ORPHANS_MAX) {
      const dropped = lane.orphans.shift() as Orphan;
      this.lost += dropped.entry[ENTRY.consumed] as number;
    }
    lane.orphans.push({ limit: table.limitOf(slot), key: table.keyOf(slot), entry });
    if (lane.phase === "free") schedule.isEager = true;
  }

  /** Does what is due. @returns The batches to send now. */
  tick(now: InstantUs, pods: number, draw: () => number): Batch[] {
    const { schedule, lanes, health } = this.#parts;
    health.noteTick(this.#plannedAt, now, schedule.longestIntervalUs);
    schedule.turn(now, draw);
    const batches: Batch[] = [];
    for (const lane of lanes) {
      if (lane.phase !== "free") this.#pursue(lane, now, pods, draw, batches);
      if (lane.phase !== "free" || !lane.hasDue || this.#rests(lane, now, draw)) continue;
      if (this.#inFlight() >= IN_FLIGHT_MAX) {
        // A lane that cannot even ask is as doubtful as one that is not answered.
        lane.unansweredSince = Math.min(lane.unansweredSince, now);
      } else if (this.#cut(lane, now)) {
        this.#send(lane, now, pods, batches);
      }
    }
    schedule.isEager = false;
    this.#plannedAt = this.wakeAt;
    return batches;
  }

  /** @returns Held checks that can now be decided; none for a reply that nobody waits for. */
  replied(now: InstantUs, lane: Lane, seq: number, reply: BatchReply): HeldCheck[] {
    if (lane.batch?.seq !== seq) return [];
    const { held, schedule } = this.#parts;
    const epochChanged = lane.epoch !== 0 && lane.epoch !== reply.epoch;
    const recoveredBefore = lane.recoveredAt;
    const batch = lane.answered(now, reply.nowUs, reply.epoch) as CutBatch;
    const ready: HeldCheck[] = [];
    for (let i = 0; i < batch.slots.length; i += 1) {
      const slot = batch.slots[i] as number;
      if (!this.#isStillInFlight(batch, i)) continue;
      this.#tallyEntry(batch, i, reply);
      this.#applyEntry(batch, i, reply, { now, epochChanged, recoveredBefore });
      ready.push(...held.heard(slot));
      if (held.isWaitedFor(slot)) schedule.markDue(slot);
    }
    if (lane.hasDue) schedule.isEager = true;
    return ready;
  }

  /** An attempt ended without a reply; the next tick chooses when to try again. */
  failed(now: InstantUs, lane: Lane, seq: number): void {
    if (lane.batch?.seq === seq && lane.phase === "waiting") lane.actAt = now;
  }

  #inFlight(): number {
    let count = 0;
    for (const lane of this.#parts.lanes) if (lane.phase !== "free") count += 1;
    return count;
  }

  /** The row has tokens to report, or the store's ledger counts stock of it as out. */
  #owes(slot: number): boolean {
    const { table } = this.#parts;
    const at = table.at(slot);
    return table.cells[at + UNREPORTED] !== 0 || table.cells[at + REPLIED_AT] !== 0;
  }

  /** Sees to a batch that is not answered yet. */
  #pursue(lane: Lane, now: InstantUs, pods: number, draw: () => number, batches: Batch[]): void {
    if (lane.actAt > now) return;
    const { schedule, commandTimeoutUs } = this.#parts;
    if (now - lane.unansweredSince >= BATCH_LIFE_US) {
      this.#giveUp(lane);
      return;
    }
    if (lane.phase === "waiting") {
      lane.pause(now, schedule.longestIntervalUs, commandTimeoutUs, draw());
    }
    if (lane.actAt <= now) this.#send(lane, now, pods, batches);
  }

  #send(lane: Lane, now: InstantUs, pods: number, batches: Batch[]): void {
    const batch = lane.send(now, pods, this.#parts.commandTimeoutUs);
    if (batch !== undefined) batches.push(batch);
  }

  /** After an outage a lane waits a random part of an interval before its next batch. */
  #rests(lane: Lane, now: InstantUs, draw: () => number): boolean {
    if (lane.recovering) {
      lane.recovering = false;
      lane.quietUntil = now + this.#parts.schedule.longestIntervalUs * draw();
    }
    return now < lane.quietUntil;
  }

  /** Cuts due rows into a batch. @returns Whether there is one. */
  #cut(lane: Lane, now: InstantUs): boolean {
    const { table } = this.#parts;
    const orphans = lane.orphans.splice(0, BATCH_ENTRIES_MAX / 2);
    const slots = this.#takeDue(lane, BATCH_ENTRIES_MAX - orphans.length);
    const size = slots.length + orphans.length;
    if (size === 0) return false;
    const entries = new Float64Array(size * ENTRY_FIELDS);
    for (const [i, slot] of slots.entries()) this.#cutSlot(lane, slot, now, entries, i);
    for (const [i, orphan] of orphans.entries()) {
      entries.set(orphan.entry, (slots.length + i) * ENTRY_FIELDS);
    }
    lane.batch = {
      seq: lane.nextSeq(),
      slots: Int32Array.from([...slots, ...orphans.map(() => -1)]),
      limits: [...slots.map((slot) => table.limitOf(slot)), ...orphans.map(({ limit }) => limit)],
      keys: [...slots.map((slot) => table.keyOf(slot)), ...orphans.map(({ key }) => key)],
      entries,
      cutAt: now,
      firstSentAt: now,
      sends: 0,
    };
    lane.unansweredSince = Math.min(lane.unansweredSince, now);
    return true;
  }

  #takeDue(lane: Lane, most: number): number[] {
    const { table, schedule } = this.#parts;
    const slots: number[] = [];
    while (slots.length < most) {
      const slot = lane.urgent.shift() ?? lane.due.shift();
      if (slot === undefined) break;
      const flags = table.flags[slot] as number;
      const isCurrent = (flags & DUE) !== 0 && table.isLive(slot) && schedule.laneOf(slot) === lane;
      if (!isCurrent) continue;
      table.flags[slot] = (flags & ~(DUE | HELD)) | IN_FLIGHT;
      slots.push(slot);
    }
    return slots;
  }

  #cutSlot(lane: Lane, slot: number, now: InstantUs, entries: Float64Array, i: number): void {
    const { table, held, fallback } = this.#parts;
    const isolatedAt = table.cells[table.at(slot) + ISOLATED_AT] as number;
    const wasIsolated = ((table.flags[slot] as number) & FALLBACK) !== 0;
    if (wasIsolated && lane.recoveredAt > isolatedAt) fallback.settle(slot, lane.outageUs, now);
    const heldCost = held.costOf(slot);
    held.noteCut(slot);
    const terms = { now, rttUs: lane.rttUs, epoch: lane.epoch, heldCost, leaving: this.#leaving };
    cutRow(table, slot, terms, entries, i * ENTRY_FIELDS);
  }

  /** Whether the row of an entry is still the one that was cut; a reload may have removed it. */
  #isStillInFlight(batch: CutBatch, i: number): boolean {
    const { table } = this.#parts;
    const slot = batch.slots[i] as number;
    if (slot < 0 || !table.isLive(slot)) return false;
    return (
      ((table.flags[slot] as number) & IN_FLIGHT) !== 0 &&
      table.keyOf(slot) === batch.keys[i] &&
      table.limitOf(slot).name === batch.limits[i]?.name
    );
  }

  #applyEntry(
    batch: CutBatch,
    i: number,
    reply: BatchReply,
    when: { now: InstantUs; epochChanged: boolean; recoveredBefore: InstantUs },
  ): void {
    const { table, hybrid } = this.#parts;
    const { now } = when;
    const slot = batch.slots[i] as number;
    const at = table.at(slot);
    const age = now - batch.firstSentAt;
    const wasIsolated = ((table.flags[slot] as number) & FALLBACK) !== 0;
    const isStale = wasIsolated && (batch.cutAt <= when.recoveredBefore || age >= STALE_US);
    const late = isStale || age > LATE_INTERVALS * table.limitOf(slot).intervalUs;
    table.flags[slot] = (table.flags[slot] as number) & ~IN_FLIGHT;
    if (wasIsolated) {
      // The time since was the fallback bucket's; flow begins anew with this reply.
      table.cells[at + FLOW] = 0;
      table.cells[at + FLOW_AT] = now;
    } else {
      const usedAt = table.cells[at + USED_AT] as number;
      hybrid.touch(slot, now, hybrid.flowRate(slot));
      // A reply is not a use: an idle key must still be forgotten in time.
      table.cells[at + USED_AT] = usedAt;
    }
    if (wasIsolated && !late) {
      table.flags[slot] = (table.flags[slot] as number) & ~FALLBACK;
      table.cells[at + ISOLATED_AT] = 0;
    }
    const terms = {
      now,
      sentAt: batch.firstSentAt,
      storeNow: reply.nowUs,
      epoch: reply.epoch,
      epochChanged: when.epochChanged,
      late: late || this.#leaving,
    };
    applyReply(
      table,
      slot,
      terms,
      reply.entries,
      i * REPLY_FIELDS,
      batch.entries,
      i * ENTRY_FIELDS,
    );
  }

  /** Counts what the fleet spent beyond the limit, each pod the part that its own report caused. */
  #tallyEntry(batch: CutBatch, i: number, reply: BatchReply): void {
    if (reply.duplicate) return;
    const { tally } = this.#parts.table.bookOf(batch.slots[i] as number);
    const consumed = batch.entries[i * ENTRY_FIELDS + ENTRY.consumed] as number;
    const level = reply.entries[i * REPLY_FIELDS + REPLY.level] as number;
    tally.overAdmitted += Math.max(0, Math.min(consumed, -level));
    tally.clipped += reply.entries[i * REPLY_FIELDS + REPLY.clipped] as number;
  }

  #giveUp(lane: Lane): void {
    const { table } = this.#parts;
    const batch = lane.batch as CutBatch;
    for (const [i, slot] of batch.slots.entries()) {
      this.lost += batch.entries[i * ENTRY_FIELDS + ENTRY.consumed] as number;
      if (slot >= 0) table.flags[slot] = (table.flags[slot] as number) & ~IN_FLIGHT;
    }
    const { unansweredSince } = lane;
    lane.free();
    // Giving up on a batch is no sign of life.
    lane.unansweredSince = unansweredSince;
  }
}
