/**
 * What a call must look like before a store takes it: a script that fails half way is not undone,
 * so nothing that could make it fail may get that far.
 */
import { type ByName, groupOfKey } from "../core/exchange.ts";
import {
  CALL_ENTRIES_MAX,
  LEASE,
  LEASE_FIELDS,
  LEASE_REPLY_FIELDS,
  LEASE_REPORT_FIELDS,
  RUN_FIELDS,
  type StoreCall,
  TAKE,
  TAKE_FIELDS,
  TAKE_REPLY_FIELDS,
} from "../core/store-call.ts";

/** Where an entry of a call and its part of the reply lie. */
export interface CallPart {
  readonly at: number;
  readonly end: number;
  readonly replyAt: number;
  readonly replyEnd: number;
}

const WHOLE_TAKE = [TAKE.giveBack];
const WHOLE_LEASE = [LEASE.need, LEASE.unit, LEASE.want];

/**
 * Checks a call and tells where its entries lie.
 *
 * @param lanes - Lanes of the store.
 * @throws {RangeError} For a call that the engine should never have made.
 */
export function partsOfCall(call: ByName<StoreCall>, lanes: number): readonly CallPart[] {
  const { kind, keys, limits, entries, hold } = call;
  if (keys.length > CALL_ENTRIES_MAX) throw new RangeError(`a call of ${keys.length} entries`);
  if (limits.length !== keys.length) {
    throw new RangeError(`a call of ${keys.length} keys and ${limits.length} limits`);
  }
  if (!(hold >= 0 && hold < 1)) throw new RangeError(`a call that holds ${hold} of the refill`);
  requireKeys(call, lanes);
  const parts: CallPart[] = [];
  let [at, replyAt] = [0, 0];
  for (let i = 0; i < keys.length; i += 1) {
    const { length, reply } = kind === "take" ? takeAt(entries, at) : leaseAt(entries, at);
    parts.push({ at, end: at + length, replyAt, replyEnd: replyAt + reply });
    at += length;
    replyAt += reply;
  }
  if (at !== entries.length) {
    throw new RangeError(`a call of ${keys.length} keys and ${entries.length} numbers`);
  }
  return parts;
}

function requireKeys({ keys, limits, lane }: ByName<StoreCall>, lanes: number): void {
  const names = new Set<string>();
  for (const [i, key] of keys.entries()) {
    const group = groupOfKey(key);
    if (group % lanes !== lane) {
      throw new RangeError(`a key of group ${group} in a call of lane ${lane}`);
    }
    names.add(`${limits[i]?.name}\0${key}`);
  }
  if (names.size !== keys.length) throw new RangeError("a call that names a key twice");
}

function takeAt(entries: Float64Array, at: number): { length: number; reply: number } {
  const runs = requireFields(entries, at, TAKE.runs, WHOLE_TAKE);
  const length = TAKE_FIELDS + runs * RUN_FIELDS;
  for (let i = at + TAKE_FIELDS; i < at + length; i += 1) requireWhole(entries[i]);
  return { length, reply: TAKE_REPLY_FIELDS + runs };
}

function leaseAt(entries: Float64Array, at: number): { length: number; reply: number } {
  const reports = requireFields(entries, at, LEASE.reports, WHOLE_LEASE);
  const length = LEASE_FIELDS + reports * LEASE_REPORT_FIELDS;
  for (let i = at + LEASE_FIELDS; i < at + length; i += 1) {
    if (!Number.isSafeInteger(entries[i])) throw new RangeError(`${entries[i]} tokens in a call`);
  }
  return { length, reply: LEASE_REPLY_FIELDS };
}

/** Fields before `counter` are finite, those named are whole; returns the count that follows. */
function requireFields(
  entries: Float64Array,
  at: number,
  counter: number,
  whole: readonly number[],
): number {
  for (let i = at; i < at + counter; i += 1) {
    if (!Number.isFinite(entries[i])) throw new RangeError(`the number ${entries[i]} in a call`);
  }
  if (!((entries[at + TAKE.demand] ?? 0) >= 0)) {
    throw new RangeError(`a demand of ${entries[at + TAKE.demand]} in a call`);
  }
  for (const field of whole) requireWhole(entries[at + field]);
  return requireWhole(entries[at + counter]);
}

function requireWhole(x: number | undefined): number {
  if (x === undefined || !Number.isSafeInteger(x) || x < 0) {
    throw new RangeError(`${x} tokens in a call`);
  }
  return x;
}
