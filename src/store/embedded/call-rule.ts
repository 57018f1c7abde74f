/**
 * One entry of a call that decides in the store, applied to one key. Twin of the loops in
 * `lua/take.lua` and `lua/lease.lua` and of `lua/lib/store-call.lua`, which explain the steps; the
 * order of operations is the same, so that the bytes are.
 */
import {
  CALL,
  LEASE,
  LEASE_FIELDS,
  LEASE_REPLY,
  LEASE_REPORT_FIELDS,
  RUN_FIELDS,
  TAKE,
  TAKE_FIELDS,
  TAKE_REPLY,
  TAKE_REPLY_FIELDS,
} from "../../core/store-call.ts";
import type { DurationUs, InstantUs, Tokens } from "../../core/units.ts";
import { expn, max, min } from "./arithmetic.ts";
import type { KeyState } from "./key-state.ts";
import { type KeyTerms, type Losses, STRICT_HOLD_US, termsOf } from "./key-terms.ts";
import type { LaneRecord } from "./lane-record.ts";

/** A ticket is at most this far behind the instant at which its cost fits. */
const TICKET_SPAN_US: DurationUs = 2_000_000;
const TICKET_MAX_US: DurationUs = 1e15;

/** Reads the limit out of the entry that begins at `at`. */
export function termsOfCall(entries: Float64Array, at: number, hold: number): KeyTerms {
  const field = (name: keyof typeof CALL): number => entries[at + CALL[name]] ?? 0;
  const shape = {
    refill: field("refill"),
    period: field("period"),
    tickUs: field("tickUs"),
    burst: field("burst"),
    maxDebt: field("maxDebt"),
  };
  return termsOf(shape, field("intervalSeconds"), field("lost"), hold);
}

/** What a call finds besides its keys. */
export interface CallTerms {
  /** Corrected time. */
  readonly now: InstantUs;
  readonly losses: Losses;
  /** Came too late to decide anything. */
  readonly isStale: boolean;
}

/**
 * Whether a call has lain somewhere for longer than the tolerance.
 *
 * @param rawHeardUs - The server's own time in the last reply to a call that the pod heard.
 * @param rawAgoUs - Time since that call was sent.
 */
export function isStale(
  { last, offset }: LaneRecord,
  rawHeardUs: InstantUs,
  rawAgoUs: DurationUs,
  toleranceUs: DurationUs,
): boolean {
  if (!(rawHeardUs > 0)) return false;
  const ago = Math.floor(rawAgoUs);
  return last - offset - rawHeardUs - ago > toleranceUs + ago / 1000;
}

/** Applies a take to an opened and advanced key; `reply` has room for its fields and runs. */
export function applyTake(
  s: KeyState,
  terms: KeyTerms,
  call: CallTerms,
  entry: Float64Array,
  reply: Float64Array,
): void {
  const { now, isStale } = call;
  const takenAt = entry[TAKE.takenAt] ?? 0;
  giveBack(s, terms, call, { tokens: entry[TAKE.giveBack] ?? 0, takenAt, freeAt: takenAt }, true);
  s.E = s.E + (entry[TAKE.demand] ?? 0);
  let room = roomOf(s);
  let denied = 0;
  const runs = entry[TAKE.runs] ?? 0;
  for (let r = 0; r < runs; r += 1) {
    const at = TAKE_FIELDS + r * RUN_FIELDS;
    const cost = entry[at] ?? 0;
    const count = entry[at + 1] ?? 0;
    const price = cost * terms.period;
    const fitting = price > 0 ? max(0, min(count, wholeBelow(room, price))) : count;
    const admitted = isStale ? 0 : fitting;
    if (!isStale && admitted < count && (denied === 0 || cost < denied)) denied = cost;
    room = room - admitted * price;
    s.D = s.D + admitted * price;
    s.C = s.C + admitted * cost;
    s.w1 = s.w1 + admitted * cost;
    reply[TAKE_REPLY_FIELDS + r] = admitted;
  }
  const missing = denied * terms.period - room;
  keepToldRoom(s, terms);
  reply[TAKE_REPLY.level] = room / terms.period;
  reply[TAKE_REPLY.deniedCost] = denied;
  reply[TAKE_REPLY.retryAt] = denied > 0 ? giveTicket(s, terms, now, missing, spread(terms)) : 0;
}

/** Applies a lease to an opened and advanced key. */
export function applyLease(
  s: KeyState,
  terms: KeyTerms,
  call: CallTerms,
  entry: Float64Array,
  reply: Float64Array,
): void {
  const { now, isStale } = call;
  const field = (name: keyof typeof LEASE): number => entry[LEASE[name]] ?? 0;
  const slotNow = Math.floor(s.t / terms.leaseSlotUs);
  settle(s, terms, call, slotNow, entry);
  const { active, share, own } = measure(s, terms, now, entry);

  let room = roomOf(s);
  const available = wholeBelow(room, terms.period);
  const [need, unit, want] = [field("need"), field("unit"), field("want")];
  let granted = 0;
  if (!isStale && available >= max(1, unit)) {
    const wish = min(want, max(1, Math.floor(available * share)));
    granted = min(available, max(need, wish));
  }
  granted = max(0, granted);
  s.D = s.D + granted * terms.period;
  s.o2 = s.o2 + granted;
  room = room - granted * terms.period;

  let retryAt = 0;
  if (!isStale && granted < want && (granted < need || room / terms.period < field("low"))) {
    const isShort = granted < need || granted === 0;
    const missing = isShort ? max(1, unit) * terms.period - room : 0;
    const between = max(Math.ceil((1e6 * field("cycleSeconds")) / active), spread(terms));
    retryAt = giveTicket(s, terms, now, missing, between);
  }
  keepToldRoom(s, terms);
  reply[LEASE_REPLY.granted] = granted;
  reply[LEASE_REPLY.slot] = slotNow + 3;
  reply[LEASE_REPLY.level] = room / terms.period;
  reply[LEASE_REPLY.activePods] = active;
  reply[LEASE_REPLY.ownDemand] = own;
  reply[LEASE_REPLY.retryAt] = retryAt;
}

/** Takes in what became of earlier leases. */
function settle(
  s: KeyState,
  terms: KeyTerms,
  call: CallTerms,
  slotNow: number,
  entry: Float64Array,
): void {
  const reports = entry[LEASE.reports] ?? 0;
  for (let r = 0; r < reports; r += 1) {
    const at = LEASE_FIELDS + r * LEASE_REPORT_FIELDS;
    const slot = entry[at] ?? 0;
    const spent = max(0, entry[at + 1] ?? 0);
    const returned = max(0, entry[at + 2] ?? 0);
    s.C = s.C + spent;
    if (slot <= slotNow) {
      const freeAt = slot * terms.leaseSlotUs;
      const takenAt = freeAt - 3 * terms.leaseSlotUs;
      giveBack(s, terms, call, { tokens: returned, takenAt, freeAt }, false);
      continue;
    }
    const name = SLOTS[slot - slotNow - 1];
    if (name === undefined) continue;
    s[name] = s[name] - min(spent, s[name]);
    const unused = min(returned, s[name]);
    s[name] = s[name] - unused;
    putBack(s, unused * s.P);
  }
}

const SLOTS = ["o0", "o1", "o2"] as const;

/** The pod's demand against all demand; estimates of A.4. */
function measure(
  s: KeyState,
  terms: KeyTerms,
  now: InstantUs,
  entry: Float64Array,
): { active: number; share: number; own: number } {
  const demand = entry[LEASE.demand] ?? 0;
  const elapsed = entry[LEASE.elapsedSeconds] ?? 0;
  const repliedAt = entry[LEASE.repliedAt] ?? 0;
  s.E = s.E + demand;
  s.A = s.A + terms.tau * (elapsed >= 0 ? 1 - expn(elapsed / terms.tau) : 1);
  const active = max(1, s.A / terms.tau);
  const since = repliedAt > 0 ? max(0, (now - repliedAt) / 1e6) : 0;
  const told = entry[LEASE.ownDemand] ?? 0;
  const own = min(s.E, told * expn(since / terms.tau) + demand);
  const part = s.E > 0 ? own / s.E : 0;
  return { active, share: min(1, 2 * max(1 / active, part)), own };
}

/** Tokens to spend, times P; below 0 when some are missing. */
function roomOf(s: KeyState): number {
  return s.b * s.P - s.D - (s.O + s.Op) * s.P;
}

/** What a reply tells as the level lacks the stock of hybrid pods too. */
function keepToldRoom(s: KeyState, terms: KeyTerms): void {
  if (s.O + s.Op > 0) s.keepTold(s.D + (s.O + s.Op) * s.P, terms);
}

/** Puts tokens (times P) back, never those that are in leases. */
function putBack(s: KeyState, worth: number): void {
  const least = min(s.leased, s.b) * s.P;
  s.D = min(s.D, max(least, s.D - worth));
}

interface Unused {
  readonly tokens: Tokens;
  readonly takenAt: InstantUs;
  /** From when on they were neither in the bucket nor kept apart from its refill. */
  readonly freeAt: InstantUs;
}

/** Gives back tokens that nobody has spent or will, less what the refill may have paid since. */
function giveBack(
  s: KeyState,
  terms: KeyTerms,
  { now, losses }: CallTerms,
  { tokens, takenAt, freeAt }: Unused,
  isTake: boolean,
): void {
  if (!(tokens > 0) || freeAt > now || takenAt <= losses.changedAt) return;
  const brokenAt = max(losses.lostAt, losses.movedAt);
  if (brokenAt > 0 && takenAt < brokenAt + STRICT_HOLD_US) return;
  const { tickUs, takeSlotUs } = terms;
  let worth = tokens * s.P;
  const tick = Math.floor(freeAt / tickUs);
  const slots = Math.floor(s.t / takeSlotUs) - Math.floor((tick * tickUs) / takeSlotUs);
  const isYoung = isTake && tick * tickUs >= s.z && slots <= 1;
  if (!isYoung) worth = worth - s.L * (Math.floor(now / tickUs) - tick);
  if (worth > 0) putBack(s, worth);
}

/** When to ask again: not before what is missing (times P) is there, one behind the other. */
function giveTicket(
  s: KeyState,
  terms: KeyTerms,
  now: InstantUs,
  missing: number,
  between: DurationUs,
): InstantUs {
  let base = now;
  if (missing > 0) {
    const ticks = wholeAbove(missing, s.L * (1 - terms.hold));
    base = max(now, min(s.t + ticks * terms.tickUs, now + TICKET_MAX_US));
  }
  s.q = min(max(s.q + between, base), base + TICKET_SPAN_US);
  return s.q;
}

/** Callers with a ticket come at most this often: twice per token, or every 20 ms. */
function spread(terms: KeyTerms): DurationUs {
  return Math.ceil(1e6 * min(0.5 / terms.rate, 0.02));
}

/** floor(x / y) of whole numbers, whose quotient may be rounded up to a whole one. */
function wholeBelow(x: number, y: number): number {
  const n = Math.floor(x / y);
  return n * y > x ? n - 1 : n;
}

/** ceil(x / y) of whole numbers. */
function wholeAbove(x: number, y: number): number {
  const n = Math.ceil(x / y);
  return n * y < x ? n + 1 : n;
}
