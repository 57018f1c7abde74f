/**
 * The pod's line to the store: cuts due rows into batches, sends each again until it is answered,
 * and applies the replies. It never admits a token; decisions are made in `pod-limiter.ts`.
 */
import { BatchCutter } from "./batch-cutter.ts";
import { type BucketTable, IN_FLIGHT } from "./bucket-table.ts";
import { type Batch, type BatchReply, ENTRY, ENTRY_FIELDS } from "./exchange.ts";
import type { FallbackBuckets } from "./fallback-buckets.ts";
import type { HeldCheck, HeldChecks } from "./held-checks.ts";
import type { HybridBuckets } from "./hybrid.ts";
import { bareEntry, orphanEntry } from "./hybrid-exchange.ts";
import { REPLIED_AT, UNREPORTED } from "./hybrid-row.ts";
import { BATCH_LIFE_US, type CutBatch, type Lane, type Orphan } from "./lane.ts";
import { ReplyApplier } from "./reply-applier.ts";
import type { RowSchedule } from "./row-schedule.ts";
import type { StoreDecided } from "./store-decided.ts";
import type { StoreHealth } from "./store-health.ts";
import type { DurationUs, InstantUs, Tokens } from "./units.ts";

/** Most batches unanswered at once over all lanes. */
const IN_FLIGHT_MAX = 8;
/** Most reports of evicted rows per lane; beyond it the oldest is dropped and counted as lost. */
const ORPHANS_MAX = 10_000;

/** What a batch says of the fleet. */
export interface FleetTerms {
  readonly pods: number;
  /** Part of the refill to hold back for pods that are cut off. */
  readonly hold: number;
}

export interface StoreLinkParts {
  readonly table: BucketTable;
  readonly hybrid: HybridBuckets;
  readonly fallback: FallbackBuckets;
  readonly held: HeldChecks;
  readonly lanes: readonly Lane[];
  readonly schedule: RowSchedule;
  readonly health: StoreHealth;
  readonly storeDecided: StoreDecided;
  readonly commandTimeoutUs: DurationUs;
}

export class StoreLink {
  readonly #parts: StoreLinkParts;
  readonly #cutter: BatchCutter;
  readonly #applier: ReplyApplier;
  #leaving = false;
  #plannedAt: InstantUs = Number.POSITIVE_INFINITY;
  /** Tokens that were admitted and will never be reported. */
  lost: Tokens = 0;

  constructor(parts: StoreLinkParts) {
    this.#parts = parts;
    this.#cutter = new BatchCutter(parts);
    this.#applier = new ReplyApplier(parts.table, parts.hybrid);
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
      if (!table.isLive(slot) || !table.isAwake(slot)) continue;
      if (table.cells[table.at(slot) + UNREPORTED] !== 0) return false;
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
    table.wake(slot);
    const lane = schedule.laneOf(slot);
    const entry = new Float64Array(ENTRY_FIELDS);
    orphanEntry(table, slot, now, lane.epoch, entry);
    this.#addOrphan(lane, { limit: table.limitOf(slot), key: table.keyOf(slot), entry });
  }

  /** Does what is due. @returns The batches to send now. */
  tick(now: InstantUs, fleet: FleetTerms, draw: () => number): Batch[] {
    const { schedule, lanes, health } = this.#parts;
    health.noteTick(this.#plannedAt, now, schedule.longestIntervalUs);
    schedule.turn(now, draw);
    const batches: Batch[] = [];
    for (const lane of lanes) {
      if (lane.phase !== "free") this.#pursue(lane, now, fleet, draw, batches);
      if (lane.phase !== "free" || !lane.hasDue || this.#rests(lane, now, draw)) continue;
      if (this.#inFlight() >= IN_FLIGHT_MAX) {
        // A lane that cannot even ask is as doubtful as one that is not answered.
        lane.unansweredSince = Math.min(lane.unansweredSince, now);
      } else if (this.#cutter.cut(lane, now, this.#leaving)) {
        this.#send(lane, now, fleet, batches);
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
    const when = {
      now,
      recoveredBefore: lane.recoveredAt,
      isLeaving: this.#leaving,
    };
    const batch = lane.answered(now, reply.nowUs, reply.epoch) as CutBatch;
    this.#repair(lane, batch, reply, now);
    const ready: HeldCheck[] = [];
    for (let i = 0; i < batch.slots.length; i += 1) {
      const slot = batch.slots[i] as number;
      if (!this.#applier.isCurrent(batch, i)) continue;
      this.#applier.tally(batch, i, reply);
      this.#applier.apply(batch, i, reply, when);
      if (held.isWaitedFor(slot)) {
        ready.push(...held.heard(slot));
        if (held.isWaitedFor(slot)) schedule.markDue(slot);
      }
      this.#parts.table.restUnlessInUse(slot, now);
    }
    if (lane.hasDue) schedule.isEager = true;
    return ready;
  }

  /** Reports again what the store has forgotten by a failover to an older replica. */
  #repair(lane: Lane, batch: CutBatch, reply: BatchReply, now: InstantUs): void {
    const previousSeq = Math.min(reply.previousSeq, batch.seq - 1);
    const when = { now, absentAt: lane.sentBefore, refill: 1 - lane.hold };
    for (const missing of lane.journal.takeMissing(previousSeq, reply.epoch, when)) {
      const { limit, key, consumed } = missing;
      const entry = bareEntry(limit, consumed);
      this.#addOrphan(lane, { limit, key, entry });
    }
    lane.journal.note(batch, reply, now);
  }

  /** An attempt ended without a reply; the next tick chooses when to try again. */
  failed(now: InstantUs, lane: Lane, seq: number): void {
    if (lane.batch?.seq === seq && lane.phase === "waiting") lane.actAt = now;
  }

  #addOrphan(lane: Lane, orphan: Orphan): void {
    if (lane.orphans.length >= ORPHANS_MAX) {
      const dropped = lane.orphans.shift() as Orphan;
      this.lost += dropped.entry[ENTRY.consumed] as number;
    }
    lane.orphans.push(orphan);
    if (lane.phase === "free") this.#parts.schedule.isEager = true;
  }

  #inFlight(): number {
    let count = 0;
    for (const lane of this.#parts.lanes) if (lane.phase !== "free") count += 1;
    return count;
  }

  /** The row has tokens to report, or the store's ledger counts stock of it as out. */
  #owes(slot: number): boolean {
    const { table } = this.#parts;
    // A row rests after a reply.
    if (!table.isAwake(slot)) return true;
    const at = table.at(slot);
    return table.cells[at + UNREPORTED] !== 0 || table.cells[at + REPLIED_AT] !== 0;
  }

  /** Sees to a batch that is not answered yet. */
  #pursue(
    lane: Lane,
    now: InstantUs,
    fleet: FleetTerms,
    draw: () => number,
    batches: Batch[],
  ): void {
    if (lane.actAt > now) return;
    const { schedule, commandTimeoutUs } = this.#parts;
    if (now - lane.unansweredSince >= BATCH_LIFE_US) {
      this.#giveUp(lane);
      return;
    }
    if (lane.phase === "waiting") {
      lane.pause(now, schedule.longestIntervalUs, commandTimeoutUs, draw());
    }
    if (lane.actAt <= now) this.#send(lane, now, fleet, batches);
  }

  #send(lane: Lane, now: InstantUs, fleet: FleetTerms, batches: Batch[]): void {
    const batch = lane.send(now, fleet.pods, fleet.hold, this.#parts.commandTimeoutUs);
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
