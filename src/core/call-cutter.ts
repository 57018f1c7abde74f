/** Words what one row says and asks in the next call of its lane. */
import type { BucketTable } from "./bucket-table.ts";
import type { CallAccounts } from "./call-accounts.ts";
import { type AbsentTerms, leaseEntry, runsOf, takeEntry } from "./call-entries.ts";
import type { Asked } from "./call-replies.ts";
import { knownFullAt } from "./full-at.ts";
import type { LeaseTerms } from "./lease-account.ts";
import { lostPart } from "./limit.ts";
import type { RowSchedule } from "./row-schedule.ts";
import type { DurationUs, InstantUs } from "./units.ts";

export interface CallCutterParts {
  readonly table: BucketTable;
  readonly schedule: RowSchedule;
  readonly accounts: CallAccounts;
  readonly decisionTimeoutUs: DurationUs;
  /** Nothing more is asked for. */
  isLeaving(): boolean;
  leaseTerms(slot: number, now: InstantUs): LeaseTerms;
  /** To be looked at later. */
  watchTake(slot: number, now: InstantUs): void;
}

export class CallCutter {
  readonly #parts: CallCutterParts;

  constructor(parts: CallCutterParts) {
    this.#parts = parts;
  }

  /**
   * @param entries - To which the row's entry is added.
   * @returns Undefined when the row has nothing to say.
   */
  cut(kind: "take" | "lease", slot: number, now: InstantUs, entries: number[]): Asked | undefined {
    return kind === "take" ? this.#take(slot, now, entries) : this.#lease(slot, now, entries);
  }

  #take(slot: number, now: InstantUs, entries: number[]): Asked | undefined {
    const { table, accounts, watchTake } = this.#parts;
    const waiting = accounts.takeWaiting(slot);
    const account = accounts.take(slot);
    const limit = table.limitOf(slot);
    const { epoch, isInDoubt } = this.#lane(slot);
    if (waiting.length === 0) {
      if (!account.hasGiveBack(limit, now)) return undefined;
      if (isInDoubt) {
        watchTake(slot, now);
        return undefined;
      }
    }
    const runs = runsOf(waiting.map(({ cost }) => cost));
    const when = { now, epoch, isInDoubt, ...this.#ifAbsent(slot, epoch) };
    entries.push(...takeEntry(limit, account, runs, when));
    return { slot, key: table.keyOf(slot), limit, waiting, runs, isReport: false };
  }

  #lease(slot: number, now: InstantUs, entries: number[]): Asked | undefined {
    const { table, accounts, decisionTimeoutUs, isLeaving, leaseTerms } = this.#parts;
    const account = accounts.leaseIfAny(slot);
    if (account === undefined) return undefined;
    const limit = table.limitOf(slot);
    const terms = leaseTerms(slot, now);
    const waiting = accounts.waiting(slot);
    const isCurrent = limit.mode === "leased";
    const mayAsk = isCurrent && !isLeaving();
    const wantsMore = mayAsk && (waiting.length > 0 || account.shouldRenew(limit, terms));
    // One asking call of a key at a time; its reply asks again for whoever still waits.
    if (wantsMore && account.isOpen(now)) return undefined;
    if (!wantsMore && account.purse.isEmpty) return undefined;
    const telling = this.#lane(slot);
    if (isCurrent && !wantsMore && telling.isInDoubt) return undefined;
    const wish = {
      // A peek waits for the reply and for no tokens.
      waiting: waiting.map(({ cost }) => cost).filter((cost) => cost > 0),
      isReport: !wantsMore,
      decisionTimeoutUs,
      ...telling,
      isInDoubt: telling.isInDoubt && isCurrent,
    };
    const ifAbsent = this.#ifAbsent(slot, telling.epoch);
    entries.push(...leaseEntry(limit, account, terms, { ...wish, ...ifAbsent }));
    if (!isCurrent && account.purse.isEmpty) accounts.dropLease(slot);
    return { slot, key: table.keyOf(slot), limit, waiting, runs: [], isReport: !wantsMore };
  }

  #ifAbsent(slot: number, epoch: number): AbsentTerms {
    const { table } = this.#parts;
    table.wake(slot);
    const lost = lostPart(table.limitOf(slot));
    return { lost, fullAt: knownFullAt(table, slot, epoch) };
  }

  /** While calls are being lost, what is told once is kept, unless there is no later. */
  #lane(slot: number): { epoch: number; isInDoubt: boolean } {
    const { epoch, isInDoubt } = this.#parts.schedule.laneOf(slot);
    return { epoch, isInDoubt: isInDoubt && !this.#parts.isLeaving() };
  }
}
