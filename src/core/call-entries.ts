/** Writes and reads the entries of store calls; their length differs from entry to entry. */

import type { LeaseAccount, LeaseTerms, LeaseWish } from "./lease-account.ts";
import type { Limit } from "./limit.ts";
import { CALL, LEASE, LEASE_FIELDS, TAKE, TAKE_FIELDS, TAKE_REPLY_FIELDS } from "./store-call.ts";
import type { TakeAccount, TakeTelling } from "./take-account.ts";
import { type InstantUs, type Tokens, US_PER_SECOND } from "./units.ts";

/** A run: the same cost so many times in a row. */
export interface Run {
  readonly cost: Tokens;
  count: number;
}

/** Joins equal neighbours: a queue of ten thousand ones is one run. */
export function runsOf(costs: readonly Tokens[]): Run[] {
  const runs: Run[] = [];
  for (const cost of costs) {
    const last = runs.at(-1);
    if (last !== undefined && last.cost === cost) last.count += 1;
    else runs.push({ cost, count: 1 });
  }
  return runs;
}

/** What an entry tells besides the account, for a key that turns out to be absent. */
export interface AbsentTerms {
  /** Part of the burst that it starts with after a data loss. */
  readonly lost: number;
  /** Store time before which its bucket cannot be full; 0 when that is not known. */
  readonly fullAt: InstantUs;
}

export function takeEntry(
  limit: Limit,
  account: TakeAccount,
  runs: readonly Run[],
  when: TakeTelling & AbsentTerms,
): number[] {
  const entry = new Array<number>(TAKE_FIELDS).fill(0);
  const { demand, giveBack, takenAt } = account.cut(limit, when);
  writeCommon(entry, limit, when);
  entry[TAKE.demand] = demand;
  entry[TAKE.giveBack] = giveBack;
  entry[TAKE.takenAt] = takenAt;
  entry[TAKE.runs] = runs.length;
  for (const { cost, count } of runs) entry.push(cost, count);
  return entry;
}

export function leaseEntry(
  limit: Limit,
  account: LeaseAccount,
  terms: LeaseTerms,
  call: LeaseWish & AbsentTerms & { readonly epoch: number },
): number[] {
  account.purse.follow(call.epoch);
  const entry = new Array<number>(LEASE_FIELDS).fill(0);
  const { fields, reports } = account.cut(limit, terms, call);
  writeCommon(entry, limit, call);
  for (const [field, value] of fields) entry[field] = value;
  entry[LEASE.reports] = reports.length;
  for (const report of reports) entry.push(...report);
  return entry;
}

/** Length of a reply to a take with so many runs. */
export function takeReplyLength(runs: number): number {
  return TAKE_REPLY_FIELDS + runs;
}

function writeCommon(entry: number[], limit: Limit, { lost, fullAt }: AbsentTerms): void {
  entry[CALL.refill] = limit.refill;
  entry[CALL.period] = limit.period;
  entry[CALL.tickUs] = limit.tickUs;
  entry[CALL.burst] = limit.burst;
  entry[CALL.maxDebt] = limit.maxDebt;
  entry[CALL.intervalSeconds] = limit.intervalUs / US_PER_SECOND;
  entry[CALL.lost] = lost;
  entry[CALL.fullAt] = fullAt;
}
