/**
 * Turns what the scripts answered into replies, and refuses what cannot be one. A server that is no
 * Redis, a proxy that cuts replies short, another program's script under our hash: none of it may
 * reach the engine as numbers.
 */
import { endianness } from "node:os";
import { type BatchReply, FAULT, REPLY, REPLY_FIELDS, type Roster } from "../../core/exchange.ts";
import {
  LEASE,
  LEASE_REPLY,
  RUN_FIELDS,
  type StoreCall,
  type StoreCallReply,
  TAKE,
  TAKE_FIELDS,
  TAKE_REPLY,
  TAKE_REPLY_FIELDS,
} from "../../core/store-call.ts";
import type { InstantUs } from "../../core/units.ts";
import { CoordinatorError } from "../../ports/coordinator.ts";
import type { CallPart } from "../call-shape.ts";

const HEADER_FIELDS = 4;
const CALL_HEADER_FIELDS = 4;
const JOIN_FIELDS = 5;
const DOUBLE_BYTES = 8;
const LITTLE_ENDIAN = endianness() === "LE";

/** Little-endian doubles, as the scripts read them. */
export function packDoubles(numbers: Float64Array | readonly number[]): Buffer {
  const own = Float64Array.from(numbers);
  const bytes = Buffer.from(own.buffer, own.byteOffset, own.byteLength);
  return LITTLE_ENDIAN ? bytes : bytes.swap64();
}

/** Copies, so that the doubles are aligned and the network's buffer is free. */
export function unpackDoubles(bytes: Uint8Array): Float64Array {
  const copy = Buffer.alloc(bytes.byteLength);
  copy.set(bytes);
  if (!LITTLE_ENDIAN) copy.swap64();
  return new Float64Array(copy.buffer, copy.byteOffset, copy.byteLength / DOUBLE_BYTES);
}

/**
 * The reply to a batch of `count` entries.
 *
 * @throws {CoordinatorError} `malformed`, saying what was wrong.
 */
export function decodeBatchReply(reply: unknown, count: number): BatchReply {
  const numbers = decodeDoubles(reply, HEADER_FIELDS + count * REPLY_FIELDS, "reconcile");
  const [nowUs = 0, epoch = 0, previousSeq = 0, repeated = 0] = numbers;
  requireHeader("reconcile", nowUs, epoch);
  if (!isCount(previousSeq)) throw malformed(`reconcile told sequence number ${previousSeq}`);
  if (repeated !== 0 && repeated !== 1) throw malformed(`reconcile told repeated ${repeated}`);
  const entries = numbers.slice(HEADER_FIELDS);
  for (let i = 0; i < count; i += 1) requireEntry(entries, i);
  return { nowUs, epoch, previousSeq, duplicate: repeated === 1, entries };
}

/**
 * The reply to a call whose entries lie as `parts` tells.
 *
 * @throws {CoordinatorError} `malformed`, saying what was wrong.
 */
export function decodeCallReply(
  reply: unknown,
  call: StoreCall,
  parts: readonly CallPart[],
): StoreCallReply {
  const length = parts.at(-1)?.replyEnd ?? 0;
  const numbers = decodeDoubles(reply, CALL_HEADER_FIELDS + length, call.kind);
  const [nowUs = 0, epoch = 0, rawUs = 0, stale = 0] = numbers;
  requireHeader(call.kind, nowUs, epoch);
  if (!(rawUs > 0) || !isFlag(stale)) throw malformed(`${call.kind} told stale ${stale}, ${rawUs}`);
  const entries = numbers.slice(CALL_HEADER_FIELDS);
  const holds = call.kind === "take" ? isTakeReply : isLeaseReply;
  for (const [i, { at, end, replyAt, replyEnd }] of parts.entries()) {
    const part = entries.subarray(replyAt, replyEnd);
    if (holds(part, call.entries.subarray(at, end))) continue;
    throw malformed(`${call.kind} answered entry ${i} with ${[...part].join(" ")}`);
  }
  return { nowUs, epoch, rawUs, isStale: stale === 1, entries };
}

/** Of each run at most its checks were admitted, and who was denied is told when to come again. */
function isTakeReply(reply: Float64Array, entry: Float64Array): boolean {
  const runs = entry[TAKE.runs] ?? 0;
  for (let run = 0; run < runs; run += 1) {
    const admitted = reply[TAKE_REPLY_FIELDS + run] ?? Number.NaN;
    const count = entry[TAKE_FIELDS + run * RUN_FIELDS + 1] ?? 0;
    if (!isCount(admitted) || admitted > count) return false;
  }
  return (
    isCount(reply[TAKE_REPLY.deniedCost]) &&
    isCount(reply[TAKE_REPLY.retryAt]) &&
    isFault(reply[TAKE_REPLY.fault])
  );
}

function isLeaseReply(reply: Float64Array, entry: Float64Array): boolean {
  const granted = reply[LEASE_REPLY.granted];
  return (
    isCount(granted) &&
    granted <= (entry[LEASE.burst] ?? 0) &&
    isCount(reply[LEASE_REPLY.slot]) &&
    isCount(reply[LEASE_REPLY.retryAt]) &&
    isFault(reply[LEASE_REPLY.fault]) &&
    (reply[LEASE_REPLY.activePods] ?? 0) >= 1 &&
    (reply[LEASE_REPLY.ownDemand] ?? -1) >= 0
  );
}

export interface JoinReply extends Roster {
  readonly nowUs: InstantUs;
  readonly epoch: number;
}

/** The reply to a heartbeat: five doubles, then names. @throws {CoordinatorError} `malformed`. */
export function decodeJoinReply(reply: unknown): JoinReply {
  const bytes = requireBytes(reply, "join");
  const head = bytes.subarray(0, JOIN_FIELDS * DOUBLE_BYTES);
  const numbers = decodeDoubles(head, JOIN_FIELDS, "join");
  const [nowUs = 0, epoch = 0, pods = 0, silent = 0, band = 0] = numbers;
  requireHeader("join", nowUs, epoch);
  if (!isCount(pods) || pods < 1 || !isCount(silent) || silent > pods || !(band >= pods)) {
    throw malformed(`join told ${pods} members, ${silent} of them silent, in a band of ${band}`);
  }
  const text = Buffer.from(bytes.subarray(head.length)).toString("utf8");
  const largeCosts = text.split("\n").slice(0, -1).sort();
  return { nowUs, epoch, pods, silent, band, largeCosts };
}

function requireBytes(reply: unknown, script: string): Uint8Array {
  if (reply instanceof Uint8Array) return reply;
  throw malformed(`${script} answered with ${describe(reply)}, bytes were expected`);
}

function decodeDoubles(reply: unknown, count: number, script: string): Float64Array {
  const bytes = requireBytes(reply, script);
  if (bytes.byteLength !== count * DOUBLE_BYTES) {
    const expected = `${count * DOUBLE_BYTES} were expected`;
    throw malformed(`${script} answered with ${bytes.byteLength} bytes, ${expected}`);
  }
  const numbers = unpackDoubles(bytes);
  for (const x of numbers) {
    if (!Number.isFinite(x)) throw malformed(`${script} answered with the number ${x}`);
  }
  return numbers;
}

function requireHeader(script: string, nowUs: number, epoch: number): void {
  if (!(nowUs > 0) || !isCount(epoch) || epoch === 0) {
    throw malformed(`${script} told time ${nowUs} and epoch ${epoch}`);
  }
}

/** The laws that the engine builds on: whole tokens, a share of at most one, flags. */
function requireEntry(entries: Float64Array, index: number): void {
  const at = index * REPLY_FIELDS;
  const field = (name: keyof typeof REPLY): number => entries[at + REPLY[name]] ?? Number.NaN;
  const share = field("share");
  const holds =
    isCount(field("granted")) &&
    isCount(field("target")) &&
    share >= 0 &&
    share <= 1 &&
    field("flowRate") >= 0 &&
    field("ownDemand") >= 0 &&
    field("activePods") >= 0 &&
    field("stockSeconds") > 0 &&
    field("clipped") >= 0 &&
    isFault(field("fault"));
  if (holds) return;
  const shown = [...entries.subarray(at, at + REPLY_FIELDS)].join(" ");
  throw malformed(`reconcile answered entry ${index} with ${shown}`);
}

function isFlag(x: number | undefined): boolean {
  return x === 0 || x === 1;
}

function isFault(x: number | undefined): boolean {
  return x === FAULT.none || x === FAULT.damaged || x === FAULT.lost;
}

function isCount(x: number | undefined): x is number {
  return x !== undefined && Number.isSafeInteger(x) && x >= 0;
}

function describe(reply: unknown): string {
  if (reply === null || typeof reply !== "object") return `${typeof reply} ${String(reply)}`;
  return Array.isArray(reply) ? "a list" : "an object";
}

function malformed(message: string): CoordinatorError {
  return new CoordinatorError("malformed", message);
}
