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
import { leaseEntry, runsOf, takeEntry } from "./call-entries.ts";
import { type Asked, CallReplies, type OpenCall } from "./call-replies.ts";
import type { HeldCheck, HeldChecks } from "./held-checks.ts";
import type { Lane } from "./lane.ts";
import type { LeaseTerms } from "./lease-account.ts";
import { lostPart } from "./limit.ts";
import type { RowSchedule } from "./row-schedule.ts";
import { CALL_ENTRIES_MAX, type StoreCall, type StoreCallReply } from "./store-call.ts";
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
  readonly #open = new Map<number, OpenCall>();
  readonly #tickets = new WakeHeap();
  #lastId = 0;
  #isEager = false;
  #isLeaving = false;

  constructor(parts: StoreCallsParts) {
    this.#parts = parts;
    this.#queues = parts.lanes.map(() => ({ take: new Set(), lease: new Set() }));
    this.#replies = new CallReplies({
      ...parts,
      accounts: this.accounts,
      tickets: this.#tickets,
      want: (slot) => this.want(slot),
    });
  }

  get wakeAt(): InstantUs {
    if (this.#isEager) return Number.NEGATIVE_INFINITY;
    let at = this.#tickets.nextAt;
    for (const call of this.#open.values()) at = Math.min(at, this.#patienceEnd(call));
    for (const lane of this.#parts.lanes) at = Math.min(at, lane.probeAt);
    return at;
  }

  /** No call is open or wanted that tells something. */
  get isSettled(): boolean {
    for (const call of this.#open.values()) if (!call.isLost) return false;
    return this.#queues.every(({ take, lease }) => take.size === 0 && lease.size === 0);
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
    const { table, schedule } = this.#parts;
    const lane = schedule.laneOf(slot);
    const queue = this.#queues[lane.index] as CallQueue;
    (table.limitOf(slot).mode === "exact" ? queue.take : queue.lease).add(slot);
    table.flags[slot] = (table.flags[slot] as number) | CALLING;
    this.#isEager = true;
  }

  /** Whether leases of this row have something to tell or to keep an eye on. */
  inspect(slot: number, now: InstantUs): boolean {
    const account = this.accounts.leaseIfAny(slot);
    if (account === undefined) return false;
    const { table } = this.#parts;
    if (account.hasReport(table.limitOf(slot), this.leaseTerms(slot, now))) this.want(slot);
    return !account.purse.isEmpty;
  }

  /** From now on no lease is asked for, and all that are held go back. */
  beginLeave(): void {
    this.#isLeaving = true;
    for (const slot of this.accounts.leased) this.returnLeases(slot);
  }

  /** Gives all leases of a row back. */
  returnLeases(slot: number): void {
    const account = this.accounts.leaseIfAny(slot);
    if (account === undefined || account.purse.isEmpty) return;
    account.purse.returnAll();
    this.#wantLease(slot);
  }

  /** The row is gone or another mode's; what it held lapses with its slots. */
  forget(slot: number): void {
    this.accounts.forget(slot);
    for (const { take, lease } of this.#queues) {
      take.delete(slot);
      lease.delete(slot);
    }
  }

  /** Whether the row has leases out or owes a report of them. */
  holdsLease(slot: number): boolean {
    return this.accounts.leaseIfAny(slot)?.purse.isEmpty === false;
  }

  isCalling(slot: number): boolean {
    return ((this.#parts.table.flags[slot] as number) & CALLING) !== 0;
  }

  /** @returns The calls to send now. */
  tick(now: InstantUs): StoreCall[] {
    this.#noteLost(now);
    for (let slot = this.#tickets.pop(now); slot !== undefined; slot = this.#tickets.pop(now)) {
      const account = this.accounts.leaseIfAny(slot);
      if (account === undefined || !this.#parts.table.isLive(slot)) continue;
      const limit = this.#parts.table.limitOf(slot);
      if (account.shouldAskAgain(limit, this.leaseTerms(slot, now))) this.want(slot);
    }
    this.#isEager = false;
    const calls: StoreCall[] = [];
    for (const lane of this.#parts.lanes) {
      const queue = this.#queues[lane.index] as CallQueue;
      let open = this.#openIn(lane);
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
    const call = this.#open.get(id);
    if (call === undefined) return [];
    this.#open.delete(id);
    call.lane.heard(now, call.sentAt, reply.nowUs, reply.epoch);
    call.lane.callAnswered(now, call, this.#openIn(call.lane) > 0);
    const ready = this.#replies.apply(call, reply, now);
    if (this.#isLeaving) for (const { slot } of call.asked) this.returnLeases(slot);
    this.#isEager = true;
    return ready;
  }

  failed(now: InstantUs, id: number): void {
    const call = this.#open.get(id);
    this.#open.delete(id);
    if (call?.isLost === false) this.#doubt(call, now);
  }

  /** Calls older than the command timeout are lost as far as others are concerned. */
  #noteLost(now: InstantUs): void {
    for (const [id, call] of this.#open) {
      if (now >= this.#patienceEnd(call)) {
        call.isLost = true;
        this.#doubt(call, now);
      }
      // Grants older than a lease are void, and so is the wait for them.
      if (now - call.sentAt > 10 * this.#parts.commandTimeoutUs + 1_000_000) this.#open.delete(id);
    }
  }

  /** When a call counts as lost; never again once it does. */
  #patienceEnd(call: OpenCall): InstantUs {
    if (call.isLost) return Number.POSITIVE_INFINITY;
    return call.sentAt + call.lane.patienceUs(this.#parts.commandTimeoutUs);
  }

  #doubt({ lane, sentAt }: OpenCall, now: InstantUs): void {
    lane.callsLostSince = Math.min(lane.callsLostSince, sentAt);
    if (lane.probeAt === Number.POSITIVE_INFINITY) {
      lane.probeAt = now + this.#parts.schedule.longestIntervalUs;
    }
  }

  #openIn(lane: Lane): number {
    let open = 0;
    for (const call of this.#open.values()) if (call.lane === lane && !call.isLost) open += 1;
    return open;
  }

  #wantLease(slot: number): void {
    const lane = this.#parts.schedule.laneOf(slot);
    this.#queues[lane.index]?.lease.add(slot);
    this.#isEager = true;
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
      const one =
        kind === "take" ? this.#cutTake(slot, now, entries) : this.#cutLease(slot, now, entries);
      if (one !== undefined) asked.push(one);
    }
    return asked.length === 0 ? undefined : this.#dress(kind, lane, asked, entries, now);
  }

  #cutTake(slot: number, now: InstantUs, entries: number[]): Asked | undefined {
    const { table } = this.#parts;
    const waiting = this.accounts.takeWaiting(slot);
    const account = this.accounts.take(slot);
    if (waiting.length === 0 && !account.hasGiveBack(now)) return undefined;
    const limit = table.limitOf(slot);
    const runs = runsOf(waiting.map(({ cost }) => cost));
    entries.push(...takeEntry(limit, account, runs, lostPart(limit), now));
    return { slot, key: table.keyOf(slot), limit, waiting, runs, isReport: false };
  }

  #cutLease(slot: number, now: InstantUs, entries: number[]): Asked | undefined {
    const { table, decisionTimeoutUs } = this.#parts;
    const account = this.accounts.leaseIfAny(slot);
    if (account === undefined) return undefined;
    const limit = table.limitOf(slot);
    const terms = this.leaseTerms(slot, now);
    const waiting = this.accounts.waiting(slot);
    const isCurrent = limit.mode === "leased";
    const mayAsk = isCurrent && !this.#isLeaving;
    const wantsMore = mayAsk && (waiting.length > 0 || account.shouldRenew(limit, terms));
    // One asking call of a key at a time; its reply asks again for whoever still waits.
    if (wantsMore && account.isOpen(now)) return undefined;
    if (!wantsMore && account.purse.isEmpty) return undefined;
    const costs = waiting.map(({ cost }) => cost);
    const call = { waiting: costs, isReport: !wantsMore, lost: lostPart(limit), decisionTimeoutUs };
    entries.push(...leaseEntry(limit, account, terms, call));
    if (!isCurrent && account.purse.isEmpty) this.accounts.dropLease(slot);
    return { slot, key: table.keyOf(slot), limit, waiting, runs: [], isReport: !wantsMore };
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
    this.#open.set(this.#lastId, { kind, lane, asked, sentAt: now, isLost: false });
    return {
      kind,
      id: this.#lastId,
      lane: lane.index,
      ...lane.reference(now),
      hold: this.#parts.hold(now),
      limits: asked.map(({ limit }) => limit),
      keys: asked.map(({ key }) => key),
      entries: Float64Array.from(entries),
    };
  }
}
