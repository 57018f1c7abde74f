/** Calls that are decided in the store, and their replies by name. Shared by the store's tests. */
import type { Limit } from "../../src/core/limit.ts";
import {
  LEASE,
  LEASE_FIELDS,
  LEASE_REPLY,
  LEASE_REPLY_FIELDS,
  type StoreCall,
  type StoreCallReply,
  TAKE,
  TAKE_FIELDS,
  TAKE_REPLY,
  TAKE_REPLY_FIELDS,
} from "../../src/core/store-call.ts";
import { SECOND } from "./pod.ts";

export interface TakeFields {
  readonly demand?: number;
  readonly fullAt?: number;
  readonly giveBack?: number;
  readonly takenAt?: number;
  readonly lost?: number;
  /** Cost, and how many checks of it come one behind the other. */
  readonly runs?: readonly (readonly [number, number])[];
}

export interface LeaseFields {
  readonly demand?: number;
  readonly fullAt?: number;
  readonly need?: number;
  readonly unit?: number;
  readonly want?: number;
  readonly elapsedSeconds?: number;
  readonly ownDemand?: number;
  readonly repliedAt?: number;
  readonly cycleSeconds?: number;
  readonly low?: number;
  readonly lost?: number;
  /** Lease slot, tokens spent, tokens returned. */
  readonly reports?: readonly (readonly [number, number, number])[];
}

export interface Asked<Fields> {
  readonly limit: Limit;
  readonly key: string;
  readonly fields?: Fields;
}

export type CallBody = Pick<StoreCall, "kind" | "limits" | "keys" | "entries">;

export function takes(items: readonly Asked<TakeFields>[]): CallBody {
  return bodyOf("take", items, (limit, fields) => takeEntry(limit, fields ?? {}));
}

export function leases(items: readonly Asked<LeaseFields>[]): CallBody {
  return bodyOf("lease", items, (limit, fields) => leaseEntry(limit, fields ?? {}));
}

function bodyOf<Fields>(
  kind: StoreCall["kind"],
  items: readonly Asked<Fields>[],
  entryOf: (limit: Limit, fields: Fields | undefined) => number[],
): CallBody {
  return {
    kind,
    limits: items.map(({ limit }) => limit),
    keys: items.map(({ key }) => key),
    entries: Float64Array.from(items.flatMap(({ limit, fields }) => entryOf(limit, fields))),
  };
}

/** A call of a pod that has heard nothing yet. */
export function callOf(body: CallBody, rest: Partial<StoreCall> = {}): StoreCall {
  const nothingHeard = { epoch: 0, heardAtUs: 0, heardAgoUs: 0, rawHeardUs: 0, rawAgoUs: 0 };
  return { id: 1, lane: 0, hold: 0, ...nothingHeard, ...body, ...rest };
}

function takeEntry(limit: Limit, fields: TakeFields): number[] {
  const { demand = 0, fullAt = 0, giveBack = 0, takenAt = 0, lost = 0, runs = [] } = fields;
  const entry = new Array<number>(TAKE_FIELDS).fill(0);
  writeLimit(entry, limit, lost, demand);
  entry[TAKE.fullAt] = fullAt;
  entry[TAKE.giveBack] = giveBack;
  entry[TAKE.takenAt] = takenAt;
  entry[TAKE.runs] = runs.length;
  return [...entry, ...runs.flat()];
}

function leaseEntry(limit: Limit, fields: LeaseFields): number[] {
  const { demand = 0, lost = 0, reports = [], ...rest } = fields;
  const entry = new Array<number>(LEASE_FIELDS).fill(0);
  writeLimit(entry, limit, lost, demand);
  entry[LEASE.elapsedSeconds] = 0.1;
  entry[LEASE.cycleSeconds] = 0.05;
  for (const [name, value] of Object.entries(rest))
    entry[LEASE[name as keyof typeof LEASE]] = value;
  entry[LEASE.reports] = reports.length;
  return [...entry, ...reports.flat()];
}

function writeLimit(entry: number[], limit: Limit, lost: number, demand: number): void {
  entry[TAKE.refill] = limit.refill;
  entry[TAKE.period] = limit.period;
  entry[TAKE.tickUs] = limit.tickUs;
  entry[TAKE.burst] = limit.burst;
  entry[TAKE.maxDebt] = limit.maxDebt;
  entry[TAKE.intervalSeconds] = limit.intervalUs / SECOND;
  entry[TAKE.lost] = lost;
  entry[TAKE.demand] = demand;
}

export interface Taken {
  readonly level: number;
  readonly deniedCost: number;
  readonly retryAt: number;
  readonly fault: number;
  /** Per run, how many were admitted. */
  readonly admitted: readonly number[];
}

/** The reply to a take of one entry. */
export function takenOf({ entries }: StoreCallReply): Taken {
  return {
    level: entries[TAKE_REPLY.level] as number,
    deniedCost: entries[TAKE_REPLY.deniedCost] as number,
    retryAt: entries[TAKE_REPLY.retryAt] as number,
    fault: entries[TAKE_REPLY.fault] as number,
    admitted: [...entries.subarray(TAKE_REPLY_FIELDS)],
  };
}

export type Leased = Record<keyof typeof LEASE_REPLY, number>;

/** The reply to entry `index` of a lease. */
export function leasedOf({ entries }: StoreCallReply, index = 0): Leased {
  const at = index * LEASE_REPLY_FIELDS;
  const fields = Object.entries(LEASE_REPLY).map(([name, i]) => [name, entries[at + i]]);
  return Object.fromEntries(fields) as Leased;
}
