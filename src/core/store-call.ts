/**
 * Calls that decide in the store: `take` (exact mode) spends tokens for single checks, `lease`
 * (leased mode) hands tokens to a pod beforehand.
 *
 * Unlike a batch of reports a call is sent once and never again: a lost take loses its tokens, a
 * lost grant lapses with its lease slot. Entries are doubles in a fixed order, as in
 * `exchange.ts`, but of differing length: each begins with its fixed fields and a count of what
 * follows.
 */
import type { Limit } from "./limit.ts";
import type { DurationUs, InstantUs } from "./units.ts";

/** Length of a lease slot; slot number j ends at store time j * LEASE_SLOT_US. */
export const LEASE_SLOT_US: DurationUs = 500_000;
/** A grant goes to the third slot end from now on, so it lives 1 to 1.5 of this. */
export const LEASE_US: DurationUs = 1_000_000;

/** Fields with which the entry of either kind of call begins. */
export const CALL = {
  refill: 0,
  period: 1,
  tickUs: 2,
  burst: 3,
  maxDebt: 4,
  intervalSeconds: 5,
  /** Part of the burst that an absent key starts with after a data loss; 0 is strict. */
  lost: 6,
  /** Tokens asked for since the last call of this key, admitted or not. */
  demand: 7,
  /** Store time before which the bucket cannot be full (`full-at.ts`); 0 when that is not known. */
  fullAt: 8,
} as const;

/** Further fields of a take, followed by `runs` pairs of cost and count, decided in order. */
export const TAKE = {
  refill: 0,
  period: 1,
  tickUs: 2,
  burst: 3,
  maxDebt: 4,
  intervalSeconds: 5,
  lost: 6,
  demand: 7,
  fullAt: 8,
  /**
   * Tokens of earlier takes that were not used and will not be, and the store time of the oldest of
   * these takes, us.
   */
  giveBack: 9,
  takenAt: 10,
  runs: 11,
} as const;
export const TAKE_FIELDS = 12;
export const RUN_FIELDS = 2;

/** Fields of a reply to a take, followed by one number per run: how many of it were admitted. */
export const TAKE_REPLY = {
  /** Level afterwards, less what is out as stock of hybrid pods; tokens. */
  level: 0,
  /** Smallest cost that was denied; 0 when none was. */
  deniedCost: 1,
  /** Store time at which the denied cost may be asked for again, us; 0 when none was denied. */
  retryAt: 2,
  /** What was wrong with the stored value, one of `FAULT`. */
  fault: 3,
} as const;
export const TAKE_REPLY_FIELDS = 4;

/** Further fields of a lease, followed by `reports` triples of slot number, spent and returned. */
export const LEASE = {
  refill: 0,
  period: 1,
  tickUs: 2,
  burst: 3,
  maxDebt: 4,
  intervalSeconds: 5,
  lost: 6,
  demand: 7,
  fullAt: 8,
  /** Tokens that waiting checks lack; nothing is granted below the smallest waiting cost `unit`. */
  need: 9,
  unit: 10,
  /** Tokens wished for, at least `need`; 0 for a call that only reports. */
  want: 11,
  /** Seconds since the last call of this key; negative for the first. */
  elapsedSeconds: 12,
  /** This pod's own decayed demand and the store time of the reply that told it; 0 for none. */
  ownDemand: 13,
  repliedAt: 14,
  /** Seconds between two prefetches of one pod while the key is scarce. */
  cycleSeconds: 15,
  /** Level below which a partial grant comes with a ticket, tokens. */
  low: 16,
  reports: 17,
} as const;
export const LEASE_FIELDS = 18;
export const LEASE_REPORT_FIELDS = 3;

/** Fields of a reply to a lease. */
export const LEASE_REPLY = {
  granted: 0,
  /** The slot that the grant belongs to. */
  slot: 1,
  /** Level afterwards, less stock of hybrid pods; tokens. */
  level: 2,
  activePods: 3,
  ownDemand: 4,
  /** Store time at which to ask again, us; 0 for at once. */
  retryAt: 5,
  /** As in a reply to a take. */
  fault: 6,
} as const;
export const LEASE_REPLY_FIELDS = 7;

/** Most entries of one call: keeps a script call below a millisecond. */
export const CALL_ENTRIES_MAX = 64;

export interface StoreCall {
  readonly kind: "take" | "lease";
  /** Tells this pod's calls apart; never used again. */
  readonly id: number;
  readonly lane: number;
  /** Epoch of the lane as last heard, and the reference for its clock, as in a batch. */
  readonly epoch: number;
  readonly heardAtUs: InstantUs;
  readonly heardAgoUs: DurationUs;
  /**
   * The server's own time in the last reply to a call of this lane that was heard, 0 for none, and
   * time since that call was sent: what tells the store that this call comes too late.
   */
  readonly rawHeardUs: InstantUs;
  readonly rawAgoUs: DurationUs;
  /** Part of the refill to hold back for pods that are cut off, 0 to below 1, as in a batch. */
  readonly hold: number;
  readonly limits: readonly Limit[];
  readonly keys: readonly string[];
  /** All entries, one behind the other. */
  readonly entries: Float64Array;
}

export interface StoreCallReply {
  readonly nowUs: InstantUs;
  readonly epoch: number;
  /** The server's own time, whatever steps were taken out of `nowUs`. */
  readonly rawUs: InstantUs;
  /** The call came too late: nothing was decided or granted, only what it told was taken in. */
  readonly isStale: boolean;
  /** All entries of the reply, one behind the other, in the order of the call. */
  readonly entries: Float64Array;
}
