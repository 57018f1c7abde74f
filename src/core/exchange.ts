/**
 * What a pod and the store say to each other in one reconcile, as the core sees it.
 *
 * Numbers travel as doubles in a fixed order: the engine writes the very array that the Redis
 * adapter sends and the embedded store reads, so that nothing is translated on the way. The order
 * is part of the contract with `lua/reconcile.lua`.
 */
import type { Limit } from "./limit.ts";
import type { DurationUs, InstantUs, Tokens } from "./units.ts";

/** Fields of one entry of a batch, in order. */
export const ENTRY = {
  /** `refill`, `period`, `tickUs`, `burst` of the limit. */
  refill: 0,
  period: 1,
  tickUs: 2,
  burst: 3,
  /** Reconcile interval in seconds. */
  intervalSeconds: 4,
  maxDebt: 5,
  /**
   * Part of the burst that idle pods may hold between them, tokens: cold part of b over all pods.
   */
  cold: 6,
  /** Part of the burst that an absent key starts with after a data loss, 0 to 1. */
  lost: 7,
  /** Tokens admitted since the last batch; negative for refunds. */
  consumed: 8,
  /** Tokens asked for since the last batch, admitted or not. */
  demand: 9,
  /** Seconds since the last batch of this key was cut. */
  elapsedSeconds: 10,
  /** Stock that was registered in the ledger at the last reply heard. */
  registered: 11,
  /** Stock still held, to be registered anew. */
  held: 12,
  /** This pod's own decayed demand as the last reply told it. */
  ownDemand: 13,
  /** Store time of the last reply heard for this key, us; 0 for none. */
  repliedAt: 14,
  /** Seconds since the pod last knew the key's level, at most the interval. */
  gapSeconds: 15,
  /** Mean round trip in seconds. */
  rttSeconds: 16,
  /** Tokens the pod needs at once for checks that it could not cover. */
  want: 17,
  /** Flow tokens the pod holds. */
  flow: 18,
  /** Store time before which the bucket cannot be full (`full-at.ts`); 0 when that is not known. */
  fullAt: 19,
} as const;
export const ENTRY_FIELDS = 20;

/** Fields of one entry of a reply, in order. */
export const REPLY = {
  /** Level of the key after this entry was applied, tokens, may be negative. */
  level: 0,
  /** Level less what other pods are expected to have spent and not yet told. */
  available: 1,
  /** Tokens per second this pod may refill by itself. */
  flowRate: 2,
  /** Stock the pod should hold, whole tokens. */
  target: 3,
  /** Stock granted by this reply, whole tokens. */
  granted: 4,
  /** This pod's share of the rate, 0 to 1. */
  share: 5,
  /** This pod's own decayed demand, to be sent back with the next entry. */
  ownDemand: 6,
  /** Pods active on this key, an estimate. */
  activePods: 7,
  /** How long stock may be used after it was asked for, seconds. */
  stockSeconds: 8,
  /** Debt that was beyond `maxDebt` and forgiven, tokens. */
  clipped: 9,
  /** What was wrong with the stored value, one of `FAULT`. */
  fault: 10,
} as const;
export const REPLY_FIELDS = 11;

/** What a reply may find wrong with a stored value, which it replaces then. */
export const FAULT = {
  none: 0,
  /** It could not be read. */
  damaged: 1,
  /** It was gone before the bucket could be full again: evicted, deleted, or expired early. */
  lost: 2,
} as const;

/** Most entries of one batch: keeps the longest script call below a millisecond. */
export const BATCH_ENTRIES_MAX = 40;

/** Groups of the key space; a group is one hash tag in the store. */
export const GROUPS = 64;

/**
 * One reconcile of one lane. A lane is the unit of ordering: one sequence of batches, at most one
 * of them unanswered. A cluster has a lane per group; a single server has few (`Coordinator.lanes`)
 * and a lane there carries every group with `group % lanes === lane`.
 */
export interface Batch {
  readonly lane: number;
  /** Sequence number of the batch in its lane, from 1. The same number means the same entries. */
  readonly seq: number;
  /** Epoch of the lane as the pod last heard it; 0 for never. */
  readonly epoch: number;
  /** Store time of the last reply heard in this lane, us; 0 for never. */
  readonly heardAtUs: InstantUs;
  /** Time since the call that this reply answered was sent. */
  readonly heardAgoUs: DurationUs;
  /** Live pods as this pod counts them, at least 1. */
  readonly pods: number;
  /** Part of the refill to hold back for pods that are cut off, 0 to below 1. */
  readonly hold: number;
  /** One limit and key per entry, in the order of `entries`. */
  readonly limits: readonly Limit[];
  readonly keys: readonly string[];
  /** `ENTRY_FIELDS` doubles per entry. */
  readonly entries: Float64Array;
}

/** What goes to a store as the store sees it: it knows limits by their names. */
export type ByName<T extends { readonly limits: readonly Limit[] }> = Omit<T, "limits"> & {
  readonly limits: readonly Pick<Limit, "name">[];
};

export interface BatchReply {
  /** The store's corrected time when the batch was applied, us. */
  readonly nowUs: InstantUs;
  readonly epoch: number;
  /** The sequence number applied before this batch was first applied. */
  readonly previousSeq: number;
  /** The batch had been applied before; nothing was applied and nothing granted. */
  readonly duplicate: boolean;
  /** `REPLY_FIELDS` doubles per entry. */
  readonly entries: Float64Array;
}

/** What one heartbeat learns about the fleet. */
export interface Roster {
  /** Pods heard within the membership timeout, this one included; at least 1. */
  readonly pods: Tokens;
  /** Pods among them that have been silent for longer than a late heartbeat explains. */
  readonly silent: number;
  /**
   * Smallest power of two that is not below the pods; it rises at once and falls after a minute.
   */
  readonly band: number;
  /** Names of limits for which some pod lately saw a cost that is a large part of the burst. */
  readonly largeCosts: readonly string[];
}

/**
 * The group of a key: FNV-1a over its UTF-16 code units, folded. All pods must agree on it, so it
 * is part of the store's layout.
 */
export function groupOfKey(key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i += 1) {
    const unit = key.charCodeAt(i);
    hash = Math.imul(hash ^ (unit & 0xff), 0x01000193);
    hash = Math.imul(hash ^ (unit >>> 8), 0x01000193);
  }
  return ((hash >>> 16) ^ hash) & (GROUPS - 1);
}
