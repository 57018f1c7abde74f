/**
 * Hybrid mode, the pod's side of a reconcile: what a row tells the store, and what the store's
 * reply makes of the row. The store's side is `lua/reconcile.lua`.
 */
import { ANSWERED, type BucketTable, DENIED } from "./bucket-table.ts";
import { ENTRY, ENTRY_FIELDS, REPLY } from "./exchange.ts";
import { NO_FULL_AT, noteFullAt } from "./full-at.ts";
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
  FULL_AT,
  HEARD_AT,
  IN_FLIGHT_TOKENS,
  LEVEL,
  OWN_DEMAND,
  REGISTERED,
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
import { type Limit, lostPart } from "./limit.ts";
import { type DurationUs, type InstantUs, type Tokens, US_PER_SECOND } from "./units.ts";

/** A refused cost is asked for during this many intervals. */
const WANT_INTERVALS = 5;

/** What a cut needs beyond the row. */
export interface CutTerms {
  readonly now: InstantUs;
  /** Mean round trip of the lane. */
  readonly rttUs: DurationUs;
  /** Epoch of the lane as last heard. */
  readonly epoch: number;
  /** Sum of the costs that wait for this reply; the one thing that differs from row to row. */
  heldCost: Tokens;
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
  entries[base + ENTRY.fullAt] = sameEpoch ? (cells[at + FULL_AT] as number) : NO_FULL_AT;

  cells[at + IN_FLIGHT_TOKENS] = cells[at + UNREPORTED] as number;
  cells[at + UNREPORTED] = 0;
  cells[at + DEMAND] = 0;
  cells[at + SPENT] = 0;
  cells[at + RELEASED] = 0;
  cells[at + CUT_AT] = terms.now;
  table.flags[slot] = (table.flags[slot] as number) & ~DENIED;
  table.markChanged(slot);
}

/**
 * The last report of a row that is being evicted: everything it owes, nothing held.
 *
 * @param epoch - Of the lane, as last heard.
 */
export function orphanEntry(
  table: BucketTable,
  slot: number,
  now: InstantUs,
  epoch: number,
  out: Float64Array,
): void {
  releaseStock(table, slot);
  const { cells } = table;
  const at = table.at(slot);
  writeReport(cells, at, table.limitOf(slot), now, out, 0);
  out[ENTRY.ownDemand] = cells[at + OWN_DEMAND] as number;
  out[ENTRY.fullAt] = cells[at + EPOCH] === epoch ? (cells[at + FULL_AT] as number) : NO_FULL_AT;
}

/** A report of nothing but consumption, for a key whose row may be gone. */
export function bareEntry(limit: Limit, consumed: Tokens): Float64Array {
  const out = new Float64Array(ENTRY_FIELDS);
  writeLimit(limit, out, 0);
  out[ENTRY.consumed] = consumed;
  return out;
}

/** What one entry of a reply is applied with. */
export interface ReplyTerms {
  readonly now: InstantUs;
  /** First send of the batch that is answered. */
  readonly sentAt: InstantUs;
  /** Store time of the reply. */
  readonly storeNow: InstantUs;
  readonly epoch: number;
  /** The store had applied the batch before. */
  readonly duplicate: boolean;
  /** The reply came too late, or for another state of the key: take note, but use no grant. */
  readonly late: boolean;
  /** The limit has got other numbers since the cut. */
  readonly otherShape: boolean;
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
  const knownEpoch = cells[at + EPOCH] as number;
  cells[at + IN_FLIGHT_TOKENS] = 0;
  // After a data loss every pod would believe that all demand is its own.
  cells[at + OWN_DEMAND] =
    knownEpoch !== 0 && knownEpoch !== terms.epoch
      ? (sent[sentBase + ENTRY.demand] as number)
      : (reply[replyBase + REPLY.ownDemand] as number);
  cells[at + REPLIED_AT] = terms.storeNow;
  cells[at + REGISTERED] = terms.duplicate ? 0 : 1;
  cells[at + EPOCH] = terms.epoch;
  cells[at + ASKED_AT] = terms.sentAt;
  if (terms.otherShape) cells[at + FULL_AT] = NO_FULL_AT;
  else noteFullAt(cells, at, limit, reply, replyBase + REPLY.level);
  table.flags[slot] = (table.flags[slot] as number) | ANSWERED;
  table.markChanged(slot);
  if (terms.late) {
    cells[at + RELEASED] = (cells[at + RELEASED] as number) + granted;
    if (limit.mode !== "hybrid") noteLevel(cells, at, terms.now, reply, replyBase);
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
  noteLevel(cells, at, terms.now, reply, replyBase);
  cells[at + STOCK_US] = (reply[replyBase + REPLY.stockSeconds] as number) * US_PER_SECOND;
}

function noteLevel(
  cells: Float64Array,
  at: number,
  now: InstantUs,
  reply: Float64Array,
  replyBase: number,
): void {
  cells[at + LEVEL] = reply[replyBase + REPLY.level] as number;
  cells[at + AVAILABLE] = reply[replyBase + REPLY.available] as number;
  cells[at + HEARD_AT] = now;
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
  writeLimit(limit, out, base);
  out[base + ENTRY.consumed] = cells[at + UNREPORTED] as number;
  out[base + ENTRY.demand] = cells[at + DEMAND] as number;
  out[base + ENTRY.elapsedSeconds] =
    Math.max(0, now - (cells[at + CUT_AT] as number)) / US_PER_SECOND;
  // What is taken back from no slot lapses there by itself; from a wrong one it would hide the
  // stock of other pods.
  out[base + ENTRY.registered] =
    cells[at + REGISTERED] === 1
      ? (cells[at + SPENT] as number) +
        (cells[at + RELEASED] as number) +
        (cells[at + STOCK] as number)
      : 0;
  out[base + ENTRY.repliedAt] = cells[at + REPLIED_AT] as number;
}

function writeLimit(limit: Limit, out: Float64Array, base: number): void {
  out[base + ENTRY.refill] = limit.refill;
  out[base + ENTRY.period] = limit.period;
  out[base + ENTRY.tickUs] = limit.tickUs;
  out[base + ENTRY.burst] = limit.burst;
  out[base + ENTRY.intervalSeconds] = limit.intervalUs / US_PER_SECOND;
  out[base + ENTRY.maxDebt] = limit.maxDebt;
  out[base + ENTRY.cold] = coldTokens(limit);
  out[base + ENTRY.lost] = lostPart(limit);
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
