/** A pod as the store sees it: limits, entries and batches. Shared by the store's tests. */
import {
  type Batch,
  type BatchReply,
  ENTRY,
  ENTRY_FIELDS,
  groupOfKey,
  REPLY,
  REPLY_FIELDS,
} from "../../src/core/exchange.ts";
import { defineLimit, type Limit, type LimitSpec } from "../../src/core/limit.ts";
import type { Clock } from "../../src/ports/clock.ts";

export const MS = 1_000;
export const SECOND = 1_000_000;

/** A clock that moves only when it is told to. */
export class ManualClock implements Clock {
  nowUs: number = 5 * SECOND;

  monotonicUs(): number {
    return this.nowUs;
  }
}

export function limitOf(spec: Partial<LimitSpec> & { name: string }): Limit {
  return defineLimit({
    tokens: 100,
    spanUs: SECOND,
    burst: 100,
    intervalUs: 100 * MS,
    fallback: { policy: "local", margin: 0.9, maxPods: 20 },
    ...spec,
  });
}

export type EntryFields = Partial<Record<keyof typeof ENTRY, number>>;

export interface Item {
  readonly limit: Limit;
  readonly key: string;
  readonly fields?: EntryFields;
}

/** An entry of a pod that asks for and consumes nothing, changed by `fields`. */
export function entryOf(limit: Limit, fields: EntryFields = {}): number[] {
  const entry: Record<keyof typeof ENTRY, number> = {
    refill: limit.refill,
    period: limit.period,
    tickUs: limit.tickUs,
    burst: limit.burst,
    intervalSeconds: limit.intervalUs / SECOND,
    maxDebt: limit.maxDebt,
    cold: Math.floor(0.1 * limit.burst),
    lost: 0.1,
    consumed: 0,
    demand: 0,
    elapsedSeconds: 0.1,
    registered: 0,
    held: 0,
    ownDemand: 0,
    repliedAt: 0,
    gapSeconds: 0.1,
    rttSeconds: 0.005,
    want: 0,
    flow: 0,
    fullAt: 0,
    ...fields,
  };
  const numbers = new Array<number>(ENTRY_FIELDS).fill(0);
  for (const [name, index] of Object.entries(ENTRY)) {
    numbers[index] = entry[name as keyof typeof ENTRY];
  }
  return numbers;
}

export function batchOf(items: readonly Item[], rest: Partial<Batch> = {}): Batch {
  return {
    lane: 0,
    seq: 1,
    epoch: 0,
    heardAtUs: 0,
    heardAgoUs: 0,
    pods: 1,
    hold: 0,
    limits: items.map(({ limit }) => limit),
    keys: items.map(({ key }) => key),
    entries: Float64Array.from(items.flatMap(({ limit, fields }) => entryOf(limit, fields))),
    ...rest,
  };
}

export type ReplyFields = Record<keyof typeof REPLY, number>;

/** Reply `index` by name. */
export function replyOf(reply: BatchReply, index = 0): ReplyFields {
  const at = index * REPLY_FIELDS;
  const fields = Object.entries(REPLY).map(([name, i]) => [name, reply.entries[at + i]]);
  return Object.fromEntries(fields) as ReplyFields;
}

/** Different keys of one lane, in a fixed order. */
export function keysOfLane(lane: number, lanes: number, count: number, prefix = "k"): string[] {
  const keys: string[] = [];
  for (let i = 0; keys.length < count; i += 1) {
    if (groupOfKey(`${prefix}${i}`) % lanes === lane) keys.push(`${prefix}${i}`);
  }
  return keys;
}
