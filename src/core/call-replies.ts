/** What the reply to a call does to its keys and to the checks that wait for them. */
import type { BucketTable } from "./bucket-table.ts";
import type { CallAccounts, WaitingCheck } from "./call-accounts.ts";
import { type Run, takeReplyLength } from "./call-entries.ts";
import { noteCallLevel } from "./full-at.ts";
import type { HeldCheck, HeldChecks } from "./held-checks.ts";
import type { Lane } from "./lane.ts";
import type { LeaseAccount } from "./lease-account.ts";
import type { Limit } from "./limit.ts";
import type { RowSchedule } from "./row-schedule.ts";
import {
  LEASE_REPLY,
  LEASE_REPLY_FIELDS,
  type StoreCallReply,
  TAKE_REPLY,
  TAKE_REPLY_FIELDS,
} from "./store-call.ts";
import { TakeAccount } from "./take-account.ts";
import type { InstantUs } from "./units.ts";
import type { WakeHeap } from "./wake-heap.ts";

/** One key's part of a call. */
export interface Asked {
  readonly slot: number;
  readonly key: string;
  readonly limit: Limit;
  readonly waiting: readonly WaitingCheck[];
  readonly runs: readonly Run[];
  readonly isReport: boolean;
}

export interface OpenCall {
  readonly kind: "take" | "lease";
  readonly lane: Lane;
  readonly asked: readonly Asked[];
  readonly sentAt: InstantUs;
  /** Counted as lost: it no longer blocks others, but its reply is still used. */
  isLost: boolean;
  /** Nobody waits for its reply any more. */
  isGivenUp: boolean;
}

export interface CallRepliesParts {
  readonly table: BucketTable;
  readonly held: HeldChecks;
  readonly schedule: RowSchedule;
  readonly accounts: CallAccounts;
  /** When to look at a scarce row again. */
  readonly tickets: WakeHeap;
  /** The row is to call again. */
  want(slot: number): void;
  /** The row holds tokens of a take that will have to go back if nobody uses them. */
  watchTake(slot: number, now: InstantUs): void;
}

export class CallReplies {
  readonly #parts: CallRepliesParts;

  constructor(parts: CallRepliesParts) {
    this.#parts = parts;
  }

  /** Applies all entries of a reply. @returns Checks that can now be decided. */
  apply(call: OpenCall, reply: StoreCallReply, now: InstantUs): HeldCheck[] {
    const ready: HeldCheck[] = [];
    let base = 0;
    for (const asked of call.asked) {
      if (call.kind === "take") {
        this.#applyTake(asked, call, reply, base, now, ready);
        base += takeReplyLength(asked.runs.length);
      } else {
        this.#applyLease(asked, call, reply, base, now, ready);
        base += LEASE_REPLY_FIELDS;
      }
    }
    return ready;
  }

  /** Whether the row of a reply is still the one that asked. */
  #isCurrent(asked: Asked): boolean {
    const { table } = this.#parts;
    return (
      table.isLive(asked.slot) &&
      table.keyOf(asked.slot) === asked.key &&
      table.limitOf(asked.slot).name === asked.limit.name
    );
  }

  #applyTake(
    asked: Asked,
    call: OpenCall,
    reply: StoreCallReply,
    base: number,
    now: InstantUs,
    ready: HeldCheck[],
  ): void {
    const { held } = this.#parts;
    const isCurrent = this.#isCurrent(asked);
    if (reply.isStale && isCurrent) this.#askAgain(asked);
    const account = isCurrent ? this.#parts.accounts.take(asked.slot) : new TakeAccount();
    if (isCurrent) {
      const { level, fault } = TAKE_REPLY;
      this.#note(asked, reply, reply.entries[base + level], reply.entries[base + fault]);
    }
    account.replied(reply.entries, base, { now, sentAt: call.sentAt, storeNow: reply.nowUs });
    if (reply.isStale && isCurrent) return;
    const taken = { at: reply.nowUs, heardAt: now, epoch: reply.epoch };
    let next = 0;
    for (const [run, { count }] of asked.runs.entries()) {
      const admitted = reply.entries[base + TAKE_REPLY_FIELDS + run] as number;
      for (let i = 0; i < count; i += 1) {
        const waiting = asked.waiting[next] as WaitingCheck;
        next += 1;
        const isAdmitted = i < admitted;
        if (waiting.held.isDone) {
          // Too late for its check; the tokens are spent in the store and may serve the next ones.
          if (isAdmitted && waiting.cost > 0) account.addCredit(waiting.cost, taken, call.sentAt);
          continue;
        }
        if (isAdmitted && isCurrent) {
          const grant = { kind: "take", cost: waiting.cost, taken } as const;
          waiting.held.grants.set(asked.slot, grant);
        }
        if (held.arrived(waiting.held, asked.slot)) ready.push(waiting.held);
      }
    }
    if (isCurrent && account.isOwing) this.#parts.watchTake(asked.slot, now);
  }

  /** Nothing was decided, so checks that still wait may be asked for once more. */
  #askAgain({ slot, waiting }: Asked): void {
    const rest = waiting.filter(({ held }) => !held.isDone);
    if (rest.length === 0) return;
    this.#parts.accounts.addWaiting(slot, ...rest);
    this.#parts.want(slot);
  }

  /** Takes note of what the store found. */
  #note({ slot, limit }: Asked, reply: StoreCallReply, level = 0, fault = 0): void {
    const { table } = this.#parts;
    table.bookOf(slot).tally.countFault(fault);
    noteCallLevel(table, slot, { limit, level, storeNow: reply.nowUs, epoch: reply.epoch });
  }

  #applyLease(
    asked: Asked,
    call: OpenCall,
    reply: StoreCallReply,
    base: number,
    now: InstantUs,
    ready: HeldCheck[],
  ): void {
    const account = this.#parts.accounts.leaseIfAny(asked.slot);
    if (account === undefined || !this.#isCurrent(asked)) return;
    const { level, fault } = LEASE_REPLY;
    this.#note(asked, reply, reply.entries[base + level], reply.entries[base + fault]);
    const { sentAt } = call;
    account.purse.follow(reply.epoch);
    const when = { now, sentAt, storeNow: reply.nowUs, isReport: asked.isReport };
    const wakeAt = account.replied(reply.entries, base, when);
    if (wakeAt < Number.POSITIVE_INFINITY) this.#parts.tickets.push(wakeAt, asked.slot);
    this.#parts.schedule.markDirty(asked.slot, now);
    if (!asked.isReport) this.#serve(asked, account, now, ready);
  }

  /**
   * Serves the checks that wait for a lease, in order; while the key is scarce the rest is
   * denied.
   */
  #serve(asked: Asked, account: LeaseAccount, now: InstantUs, ready: HeldCheck[]): void {
    const { held } = this.#parts;
    const rest: WaitingCheck[] = [];
    for (const waiting of this.#parts.accounts.takeWaiting(asked.slot)) {
      const wasAsked = asked.waiting.includes(waiting);
      if (account.purse.have(now) >= waiting.cost) {
        const grant = { kind: "lease", spend: account.purse.spend(waiting.cost) } as const;
        waiting.held.grants.set(asked.slot, grant);
      } else if (!(account.isBlocked && wasAsked)) {
        rest.push(waiting);
        continue;
      }
      if (held.arrived(waiting.held, asked.slot)) ready.push(waiting.held);
    }
    if (rest.length === 0) return;
    this.#parts.accounts.addWaiting(asked.slot, ...rest);
    this.#parts.want(asked.slot);
  }
}
