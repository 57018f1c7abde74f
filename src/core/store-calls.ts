/**
 * The pod's calls to the store for leased and exact limits: which keys ask, what they ask for, and
 * what becomes of the checks that wait.
 *
 * Keys that want to call in the same turn of the event loop share a call. A call is sent once; when
 * no reply comes its checks run out of time by themselves, and the lane is in doubt until the next
 * reply. A lane in doubt holds no check and probes once an interval.
 */
import { type BucketTable, CALLING } from "./bucket-table.ts";
import { CallAccounts } from "./call-accounts.ts";
import { CallCutter } from "./call-cutter.ts";
import { type Asked, CallReplies, type OpenCall } from "./call-replies.ts";
import type { HeldCheck, HeldChecks } from "./held-checks.ts";
import type { Lane } from "./lane.ts";
import type { LeaseTerms } from "./lease-account.ts";
import { OpenCalls } from "./open-calls.ts";
import type { RowSchedule } from "./row-schedule.ts";
import { CALL_ENTRIES_MAX, type StoreCall, type StoreCallReply } from "./store-call.ts";
import { CREDIT_US } from "./take-account.ts";
import type { DurationUs, InstantUs, Tokens } from "./units.ts";
import { WakeHeap } from "./wake-heap.ts";

/** Unanswered calls of a lane: a single one would cost most checks a second round trip. */
const OPEN_PER_LANE_MAX = 4;

export interface StoreCallsParts {
  readonly table: BucketTable;
  readonly held: HeldChecks;
  readonly schedule: RowSchedule;
  readonly lanes: readonly Lane[];
  readonly commandTimeoutUs: DurationUs;
  readonly decisionTimeoutUs: DurationUs;
  pods(): number;
  /** Part of the refill to hold back for pods that are cut off. */
  hold(now: InstantUs): number;
}

/** Rows of one lane that are to call, by kind. */
interface CallQueue {
  readonly take: Set<number>;
  readonly lease: Set<number>;
}

export class StoreCalls {
  readonly #parts: StoreCallsParts;
  readonly accounts: CallAccounts = new CallAccounts();
  readonly #replies: CallReplies;
  readonly #queues: readonly CallQueue[];
  readonly #open: OpenCalls;
  readonly #cutter: CallCutter;
  readonly #tickets = new WakeHeap();
  #lastId = 0;
  #isEager = false;
  #isLeaving = false;

  constructor(parts: StoreCallsParts) {
    this.#parts = parts;
    this.#open = new OpenCalls(parts.commandTimeoutUs);
    this.#cutter = new CallCutter({
      ...parts,
      accounts: this.accounts,
      isLeaving: () => this.#isLeaving,
      leaseTerms: (slot, now) => this.leaseTerms(slot, now),
      watchTake: (slot, now) => this.#watchTake(slot, now),
    });
    this.#queues = parts.lanes.map(() => ({ take: new Set(), lease: new Set() }));
    this.#replies = new CallReplies({
      ...parts,
      accounts: this.accounts,
      tickets: this.#tickets,
      want: (slot) => this.want(slot),
      watchTake: (slot, now) => this.#watchTake(slot, now),
    });
  }

  get wakeAt(): InstantUs {
    if (this.#isEager) return Number.NEGATIVE_INFINITY;
    let at = Math.min(this.#tickets.nextAt, this.#open.wakeAt);
    for (const lane of this.#parts.lanes) at = Math.min(at, lane.probeAt);
    return at;
  }

  /** No call is open or wanted that tells something. */
  get isSettled(): boolean {
    const isQuiet = this.#queues.every(({ take, lease }) => take.size === 0 && lease.size === 0);
    return isQuiet && this.#open.isSettled;
  }

  leaseTerms(slot: number, now: InstantUs): LeaseTerms {
    const { schedule } = this.#parts;
    return { now, pods: this.#parts.pods(), rttUs: schedule.laneOf(slot).rttUs };
  }

  /** The check waits for a call of this row. */
  await(held: HeldCheck, slot: number, cost: Tokens): void {
    this.accounts.addWaiting(slot, { held, cost });
    this.want(slot);
  }

  /** The row is to call, at once if its lane has room. */
  want(slot: number): void {
    this.#enqueue(slot, this.#parts.table.limitOf(slot).mode === "exact" ? "take" : "lease");
  }

  /** Tokens of a take go back, whatever mode the row is in by now. */
  wantTake(slot: number): void {
    this.#enqueue(slot, "take");
  }

  #enqueue(slot: number, kind: keyof CallQueue): void {
    const { table, schedule } = this.#parts;
    this.#queues[schedule.laneOf(slot).index]?.[kind].add(slot);
    table.flags[slot] = (table.flags[slot] as number) | CALLING;
    this.#isEager = true;
  }

  /**
   * Whether leases of this row have something to tell or to keep an eye on. What is told in doubt
   * could be lost, and is told once.
   */
  inspect(slot: number, now: InstantUs): boolean {
    const account = this.accounts.leaseIfAny(slot);
    if (account === undefined) return false;
    const { table, schedule } = this.#parts;
    const hasReport = account.hasReport(table.limitOf(slot), this.leaseTerms(slot, now));
    if (hasReport && !schedule.laneOf(slot).isInDoubt) this.want(slot);
    return !account.purse.isEmpty;
  }

  /** From now on no lease is asked for, and all that are held go back. */
  beginLeave(): void {
    this.#isLeaving = true;
    for (const slot of this.accounts.leased) this.returnLeases(slot);
    for (const slot of this.accounts.taking) this.#returnTakes(slot);
  }

  #returnTakes(slot: number): void {
    const account = this.accounts.takeIfAny(slot);
    if (account?.isOwing !== true) return;
    account.endCredits();
    this.wantTake(slot);
  }

  /** Gives all leases of a row back. */
  returnLeases(slot: number): void {
    const account = this.accounts.leaseIfAny(slot);
    if (account === undefined || account.purse.isEmpty) return;
    account.purse.returnAll();
    this.#enqueue(slot, "lease");
  }

  /** The row is gone or another mode's; what it held lapses with its slots. */
  forget(slot: number): void {
    this.accounts.forget(slot);
    for (const { take, lease } of this.#queues) {
      take.delete(slot);
      lease.delete(slot);
    }
  }

  /** Whether the row has leases out, owes a report of them, or tokens of a take. */
  holdsLease(slot: number): boolean {
    if (this.accounts.takeIfAny(slot)?.isOwing === true) return true;
    return this.accounts.leaseIfAny(slot)?.purse.isEmpty === false;
  }

  isCalling(slot: number): boolean {
    return ((this.#parts.table.flags[slot] as number) & CALLING) !== 0;
  }

  /** @returns The calls to send now. */
  tick(now: InstantUs): StoreCall[] {
    this.#open.expire(now, (call) => this.#doubt(call, now));
    for (let slot = this.#tickets.pop(now); slot !== undefined; slot = this.#tickets.pop(now)) {
      if (!this.#parts.table.isLive(slot)) continue;
      this.#lookAfterTake(slot, now);
      const account = this.accounts.leaseIfAny(slot);
      if (account === undefined) continue;
      const limit = this.#parts.table.limitOf(slot);
      if (account.shouldAskAgain(limit, this.leaseTerms(slot, now))) this.want(slot);
    }
    this.#isEager = false;
    const calls: StoreCall[] = [];
    for (const lane of this.#parts.lanes) {
      const queue = this.#queues[lane.index] as CallQueue;
      let open = this.#open.countIn(lane);
      for (const kind of ["take", "lease"] as const) {
        while (queue[kind].size > 0 && open < OPEN_PER_LANE_MAX) {
          const call = this.#cut(kind, lane, queue[kind], now);
          if (call === undefined) break;
          calls.push(call);
          open += 1;
        }
      }
      if (lane.probeAt <= now) {
        lane.probeAt = now + this.#parts.schedule.longestIntervalUs;
        if (open === 0) calls.push(this.#dress("take", lane, [], [], now));
      }
    }
    return calls;
  }

  /** @returns Checks that can now be decided. */
  replied(now: InstantUs, id: number, reply: StoreCallReply): HeldCheck[] {
    const call = this.#open.take(id);
    if (call === undefined) return [];
    call.lane.heard(now, call.sentAt, reply.nowUs, reply.epoch);
    call.lane.heardRaw(call.sentAt, reply.rawUs);
    call.lane.callAnswered(now, call, this.#open.countIn(call.lane) > 0);
    const ready = this.#replies.apply(call, reply, now);
    if (this.#isLeaving) {
      for (const { slot } of call.asked) {
        this.returnLeases(slot);
        this.#returnTakes(slot);
      }
    }
    this.#isEager = true;
    return ready;
  }

  failed(now: InstantUs, id: number): void {
    const call = this.#open.take(id);
    if (call?.isLost === false) this.#doubt(call, now);
  }

  /**
   * Looks at a row some time after a late answer, when what was not used of it has had an interval
   * to go back with another call.
   */
  #watchTake(slot: number, now: InstantUs): void {
    const account = this.accounts.take(slot);
    if (account.lookAt < Number.POSITIVE_INFINITY) return;
    account.lookAt = now + CREDIT_US + this.#parts.table.limitOf(slot).intervalUs;
    this.#tickets.push(account.lookAt, slot);
  }

  #lookAfterTake(slot: number, now: InstantUs): void {
    const account = this.accounts.takeIfAny(slot);
    if (account === undefined || account.lookAt > now) return;
    account.lookAt = Number.POSITIVE_INFINITY;
    const { table, schedule } = this.#parts;
    if (account.hasGiveBack(table.limitOf(slot), now) && !schedule.laneOf(slot).isInDoubt) {
      this.wantTake(slot);
    } else if (account.isOwing) this.#watchTake(slot, now);
  }

  #doubt({ lane, sentAt }: OpenCall, now: InstantUs): void {
    lane.callsLostSince = Math.min(lane.callsLostSince, sentAt);
    if (lane.probeAt === Number.POSITIVE_INFINITY) {
      lane.probeAt = now + this.#parts.schedule.longestIntervalUs;
    }
  }

  #cut(
    kind: "take" | "lease",
    lane: Lane,
    queue: Set<number>,
    now: InstantUs,
  ): StoreCall | undefined {
    const { table } = this.#parts;
    const asked: Asked[] = [];
    const entries: number[] = [];
    for (const slot of queue) {
      if (asked.length >= CALL_ENTRIES_MAX) break;
      queue.delete(slot);
      if (!table.isLive(slot)) continue;
      table.flags[slot] = (table.flags[slot] as number) & ~CALLING;
      const one = this.#cutter.cut(kind, slot, now, entries);
      if (one !== undefined) asked.push(one);
    }
    return asked.length === 0 ? undefined : this.#dress(kind, lane, asked, entries, now);
  }

  #dress(
    kind: "take" | "lease",
    lane: Lane,
    asked: readonly Asked[],
    entries: readonly number[],
    now: InstantUs,
  ): StoreCall {
    this.#lastId += 1;
    lane.callSent(now);
    const state = { isLost: false, isGivenUp: false };
    this.#open.add(this.#lastId, { kind, lane, asked, sentAt: now, ...state });
    return {
      kind,
      id: this.#lastId,
      lane: lane.index,
      ...lane.reference(now),
      ...lane.rawReference(now),
      hold: this.#parts.hold(now),
      limits: asked.map(({ limit }) => limit),
      keys: asked.map(({ key }) => key),
      entries: Float64Array.from(entries),
    };
  }
}
