/**
 * Hybrid mode, the pod's side of a reconcile: what a row tells the store, and what the store's reply
 * makes of the row. The store's side is `lua/reconcile.lua`.
 */
import { ANSWERED, type BucketTable, DENIED } from "./bucket-table.ts";
import { ENTRY, REPLY } from "./exchange.ts";
import { coldTokens, flowMax } from "./hybrid.ts";
import {
  ASKED_AT,
  AVAILABLE,
  CREDIT,
  CUT_AT,
  DEMAND,
  EPOCH,
  FLOW,
  FLOW_AT,
  FLOW_MAX,
  FLOW_RATE,
  HEARD_AT,
  IN_FLIGHT_TOKENS,
  LEVEL,
  OWN_DEMAND,
  RELEASED,
  REPLIED_AT,
  SHARE,
  SPENT,
  STOCK,
  STOCK_US,
  UNREPORTED,
  WANT,
  WANT_AT,
} from "./hybrid-row.ts";
import type { Limit } from "./limit.ts";
import { type DurationUs, type InstantUs, type Tokens, US_PER_SECOND } from "./units.ts";

/** Level that a key starts with after the store lost its data, as a part of the burst. */
const LOST_PART = 0.1;
/** A refused cost is asked for during this many intervals. */
const WANT_INTERVALS = 5;

/** What a cut needs beyond the row. */
export interface CutTerms {
  readonly now: InstantUs;
  /** Mean round trip of the lane. */
  readonly rttUs: DurationUs;
  /** Epoch of the lane as last heard. */
  readonly epoch: number;
  /** Sum of the costs that wait for this reply. */
  readonly heldCost: Tokens;
  /** The pod is leaving: give all stock back. */
  readonly leaving: boolean;
}

/** Writes the row's report into `entries` from `base` on, and begins a new report. */
export function cutRow(
  table: BucketTable,
  slot: number,
  terms: CutTerms,
  entries: Float64Array,
  base: number,
): void {
  const { cells } = table;
  const at = table.at(slot);
  const limit = table.limitOf(slot);
  if (terms.leaving) releaseStock(table, slot);
  const heardBefore = (cells[at + REPLIED_AT] as number) !== 0;
  const sameEpoch = cells[at + EPOCH] === terms.epoch;
  writeReport(cells, at, limit, terms.now, entries, base);
  entries[base + ENTRY.ownDemand] = sameEpoch ? (cells[at + OWN_DEMAND] as number) : 0;
  entries[base + ENTRY.held] = cells[at + STOCK] as number;
  const gapUs = heardBefore ? terms.now - (cells[at + ASKED_AT] as number) : limit.intervalUs;
  entries[base + ENTRY.gapSeconds] = Math.min(limit.intervalUs, gapUs) / US_PER_SECOND;
  entries[base + ENTRY.rttSeconds] = terms.rttUs / US_PER_SECOND;
  entries[base + ENTRY.want] = terms.leaving ? 0 : wanted(cells, at, limit, terms);
  entries[base + ENTRY.flow] = cells[at + FLOW] as number;

  cells[at + IN_FLIGHT_TOKENS] = cells[at + UNREPORTED] as number;
  cells[at + UNREPORTED] = 0;
  cells[at + DEMAND] = 0;
  cells[at + SPENT] = 0;
  cells[at + RELEASED] = 0;
  cells[at + CUT_AT] = terms.now;
  table.flags[slot] = (table.flags[slot] as number) & ~DENIED;
}

/** The last report of a row that is being evicted: everything it owes, nothing held. */
export function orphanEntry(
  table: BucketTable,
  slot: number,
  now: InstantUs,
  out: Float64Array,
): void {
  releaseStock(table, slot);
  const { cells } = table;
  const at = table.at(slot);
  writeReport(cells, at, table.limitOf(slot), now, out, 0);
  out[ENTRY.ownDemand] = cells[at + OWN_DEMAND] as number;
}

/** What one entry of a reply is applied with. */
export interface ReplyTerms {
  readonly now: InstantUs;
  /** First send of the batch that is answered. */
  readonly sentAt: InstantUs;
  /** Store time of the reply. */
  readonly storeNow: InstantUs;
  readonly epoch: number;
  /** The lane's data was lost since this key was last told about. */
  readonly epochChanged: boolean;
  /** The reply came too late, or for another state of the key: take note, but use no grant. */
  readonly late: boolean;
}

/** Applies one entry of a reply to its row. The row must have been touched. */
export function applyReply(
  table: BucketTable,
  slot: number,
  terms: ReplyTerms,
  reply: Float64Array,
  replyBase: number,
  sent: Float64Array,
  sentBase: number,
): void {
  const { cells } = table;
  const at = table.at(slot);
  const limit = table.limitOf(slot);
  const granted = reply[replyBase + REPLY.granted] as number;
  cells[at + IN_FLIGHT_TOKENS] = 0;
  cells[at + OWN_DEMAND] = terms.epochChanged
    ? (sent[sentBase + ENTRY.demand] as number)
    : (reply[replyBase + REPLY.ownDemand] as number);
  cells[at + REPLIED_AT] = terms.storeNow;
  cells[at + EPOCH] = terms.epoch;
  cells[at + ASKED_AT] = terms.sentAt;
  table.flags[slot] = (table.flags[slot] as number) | ANSWERED;
  if (terms.late) {
    cells[at + RELEASED] = (cells[at + RELEASED] as number) + granted;
    return;
  }
  const target = reply[replyBase + REPLY.target] as number;
  const stock = (cells[at + STOCK] as number) + granted;
  const kept = Math.min(stock, target);
  cells[at + RELEASED] = (cells[at + RELEASED] as number) + stock - kept;
  cells[at + STOCK] = kept;
  cells[at + CREDIT] = kept + (cells[at + SPENT] as number);

  // A share is lowered at once and raised one reply later: pods that were told within one round
  // trip could otherwise hold shares that add up to more than one.
  const share = reply[replyBase + REPLY.share] as number;
  const before = cells[at + SHARE] as number;
  const rate = (reply[replyBase + REPLY.flowRate] as number) * Math.min(1, before / share);
  cells[at + SHARE] = share;
  cells[at + FLOW_RATE] = rate;
  cells[at + FLOW_MAX] = flowMax(limit, rate);
  cells[at + FLOW] = Math.min(cells[at + FLOW] as number, cells[at + FLOW_MAX] as number);
  cells[at + FLOW_AT] = Math.max(terms.now, cells[at + FLOW_AT] as number);
  cells[at + LEVEL] = reply[replyBase + REPLY.level] as number;
  cells[at + AVAILABLE] = reply[replyBase + REPLY.available] as number;
  cells[at + HEARD_AT] = terms.now;
  cells[at + STOCK_US] = (reply[replyBase + REPLY.stockSeconds] as number) * US_PER_SECOND;
}

/** Fields that a report has whether the row lives on or not. */
function writeReport(
  cells: Float64Array,
  at: number,
  limit: Limit,
  now: InstantUs,
  out: Float64Array,
  base: number,
): void {
  const heardBefore = (cells[at + REPLIED_AT] as number) !== 0;
  out[base + ENTRY.refill] = limit.refill;
  out[base + ENTRY.period] = limit.period;
  out[base + ENTRY.tickUs] = limit.tickUs;
  out[base + ENTRY.burst] = limit.burst;
  out[base + ENTRY.intervalSeconds] = limit.intervalUs / US_PER_SECOND;
  out[base + ENTRY.maxDebt] = limit.maxDebt;
  out[base + ENTRY.cold] = coldTokens(limit);
  out[base + ENTRY.lost] = LOST_PART;
  out[base + ENTRY.consumed] = cells[at + UNREPORTED] as number;
  out[base + ENTRY.demand] = cells[at + DEMAND] as number;
  out[base + ENTRY.elapsedSeconds] =
    Math.max(0, now - (cells[at + CUT_AT] as number)) / US_PER_SECOND;
  out[base + ENTRY.registered] = heardBefore
    ? (cells[at + SPENT] as number) +
      (cells[at + RELEASED] as number) +
      (cells[at + STOCK] as number)
    : 0;
  out[base + ENTRY.repliedAt] = cells[at + REPLIED_AT] as number;
}

function wanted(cells: Float64Array, at: number, limit: Limit, terms: CutTerms): Tokens {
  const age = terms.now - (cells[at + WANT_AT] as number);
  if (age > WANT_INTERVALS * limit.intervalUs) cells[at + WANT] = 0;
  return Math.min(limit.burst, Math.max(cells[at + WANT] as number, terms.heldCost));
}

function releaseStock(table: BucketTable, slot: number): void {
  const { cells } = table;
  const at = table.at(slot);
  cells[at + RELEASED] = (cells[at + RELEASED] as number) + (cells[at + STOCK] as number);
  cells[at + STOCK] = 0;
}
