/**
 * One entry of a batch applied to one key. Twin of the loop in `lua/reconcile.lua`, which explains
 * the steps; the order of operations is the same, so that the bytes are.
 */
import { ENTRY, ENTRY_FIELDS, REPLY, REPLY_FIELDS } from "../../core/exchange.ts";
import type { InstantUs } from "../../core/units.ts";
import { expn, max, min } from "./arithmetic.ts";
import type { KeyState } from "./key-state.ts";
import { type KeyTerms, type Losses, STRICT_HOLD_US, termsOf } from "./key-terms.ts";

const E1 = Math.E;

/** What holds for a whole batch. */
export interface BatchTerms {
  readonly now: InstantUs;
  /** The batch was applied before: change nothing, grant nothing, answer. */
  readonly repeated: boolean;
  readonly pods: number;
  readonly hold: number;
}

/** Reads the limit out of entry `index`. */
export function termsOfEntry(entries: Float64Array, index: number, hold: number): KeyTerms {
  const at = index * ENTRY_FIELDS;
  const shape = {
    refill: entries[at + ENTRY.refill] ?? 0,
    period: entries[at + ENTRY.period] ?? 0,
    tickUs: entries[at + ENTRY.tickUs] ?? 0,
    burst: entries[at + ENTRY.burst] ?? 0,
    maxDebt: entries[at + ENTRY.maxDebt] ?? 0,
  };
  const intervalSeconds = entries[at + ENTRY.intervalSeconds] ?? 0;
  return termsOf(shape, intervalSeconds, entries[at + ENTRY.lost] ?? 0, hold);
}

/** Whether entry `index`, not the first, tells of the same limit as the one in front of it. */
export function isOfSameLimit(entries: Float64Array, index: number): boolean {
  const at = index * ENTRY_FIELDS;
  for (let field = 0; field <= ENTRY.lost; field += 1) {
    if (entries[at + field] !== entries[at + field - ENTRY_FIELDS]) return false;
  }
  return true;
}

/** Before when the bucket of entry `index` cannot be full, as its pod knows; 0 for unknown. */
export function fullAtOf(
  entries: Float64Array,
  index: number,
  { lost }: KeyTerms,
  { movedAt }: Losses,
): InstantUs {
  const at = index * ENTRY_FIELDS;
  if (movedAt > 0 && lost > 0) {
    // What a failover has lost the pods report again: it is charged by that.
    const repliedAt = entries[at + ENTRY.repliedAt] ?? 0;
    if (repliedAt < movedAt + STRICT_HOLD_US) return 0;
  }
  return entries[at + ENTRY.fullAt] ?? 0;
}

/** Applies entry `index` to an opened and advanced key and writes reply `index`. */
export function applyEntry(
  s: KeyState,
  terms: KeyTerms,
  batch: BatchTerms,
  entries: Float64Array,
  index: number,
  reply: Float64Array,
): void {
  const at = index * ENTRY_FIELDS;
  const entry = entries.subarray(at, at + ENTRY_FIELDS);
  const out = reply.subarray(index * REPLY_FIELDS, (index + 1) * REPLY_FIELDS);
  if (!batch.repeated) out[REPLY.clipped] = report(s, terms, entry);
  const { share, own } = shareOut(s, terms, batch, entry);
  grant(s, terms, batch, entry, share, out);
  out[REPLY.share] = share;
  out[REPLY.ownDemand] = own;
  out[REPLY.activePods] = max(1, s.A / terms.tau);
  out[REPLY.stockSeconds] = s.S / 1e6;
}

/** Takes in what the pod reports; returns the debt that was forgiven. */
function report(s: KeyState, terms: KeyTerms, entry: Float64Array): number {
  const consumed = entry[ENTRY.consumed] ?? 0;
  const repliedAt = entry[ENTRY.repliedAt] ?? 0;
  const registered = entry[ENTRY.registered] ?? 0;
  const leased = min(s.leased, terms.burst) * terms.period;
  const deepest = (terms.burst + terms.maxDebt) * terms.period;
  let deficit = s.D + consumed * terms.period;
  let clipped = 0;
  if (deficit > deepest) {
    clipped = (deficit - deepest) / terms.period;
    deficit = deepest;
  }
  s.D = max(deficit, leased);
  s.E = s.E + (entry[ENTRY.demand] ?? 0);
  s.C = s.C + max(0, consumed);
  const elapsed = entry[ENTRY.elapsedSeconds] ?? 0;
  if (repliedAt === 0) s.A = s.A + terms.tau;
  else s.A = s.A + terms.tau * (1 - expn(elapsed / terms.tau));
  const registeredAt = Math.floor(repliedAt / terms.tickUs) * terms.tickUs;
  if (registeredAt >= s.tS) s.O = max(0, s.O - registered);
  else if (registeredAt >= s.tS - s.S) s.Op = max(0, s.Op - registered);
  s.O = s.O + (entry[ENTRY.held] ?? 0);
  return clipped;
}

/** The pod's share of the rate, and its own decayed demand. */
function shareOut(
  s: KeyState,
  terms: KeyTerms,
  batch: BatchTerms,
  entry: Float64Array,
): { share: number; own: number } {
  const repliedAt = entry[ENTRY.repliedAt] ?? 0;
  const interval = entry[ENTRY.intervalSeconds] ?? 0;
  const since = repliedAt > 0 ? max(0, (batch.now - repliedAt) / 1e6) : 0;
  const told = entry[ENTRY.ownDemand] ?? 0;
  const own = min(s.E, told * expn(since / terms.tau) + (entry[ENTRY.demand] ?? 0));
  const x = (entry[ENTRY.elapsedSeconds] ?? 0) / terms.tau;
  const mean = x > 1e-9 ? (own * (1 - expn(x))) / x : own;
  const prior = max(terms.rate * interval, min(0.1 * terms.burst, batch.pods));
  const share = (mean + prior / batch.pods) / (max(0, s.E - own) + mean + prior);
  return { share, own };
}

/** Flow and stock. */
function grant(
  s: KeyState,
  terms: KeyTerms,
  batch: BatchTerms,
  entry: Float64Array,
  share: number,
  out: Float64Array,
): void {
  const interval = entry[ENTRY.intervalSeconds] ?? 0;
  const held = entry[ENTRY.held] ?? 0;
  const gap = entry[ENTRY.gapSeconds] ?? 0;
  const rtt = entry[ENTRY.rttSeconds] ?? 0;
  const level = terms.burst - s.D / terms.period;
  const available = level - (1 - share) * (s.C / terms.tau) * (interval / 2 + rtt / 2);
  const part = share + (1 - share) * min(1 / E1, gap / (E1 * (gap + rtt)));
  const pace = 1 + min(0, available) / (terms.rate * (E1 * (interval + rtt)));
  const flowRate = share * terms.rate * max(0, min(1, pace));

  // Something stays behind for a pod that this one has not heard of yet, unless it is needed here;
  // the more pods it knows of, the less.
  const there = max(0, available);
  let target = share * part * there;
  if ((entry[ENTRY.demand] ?? 0) === 0) {
    target = min(min(target, (entry[ENTRY.cold] ?? 0) / batch.pods), held);
  }
  target = Math.floor(target);
  const room = Math.floor(available - s.O - s.Op);
  const spare = Math.floor(there / (2 * batch.pods * batch.pods));
  let grant = min(target - held, room - spare);
  const want = entry[ENTRY.want] ?? 0;
  if (want > 0) {
    const flow = entry[ENTRY.flow] ?? 0;
    const need = Math.ceil(want - min(flow, max(1, flowRate * interval)));
    if (need - held > grant && need - held <= room) {
      target = max(target, min(need, terms.burst));
      grant = min(need, terms.burst) - held;
    }
  }
  const granted = batch.repeated ? 0 : max(0, grant);
  s.O = s.O + granted;
  out[REPLY.level] = level;
  out[REPLY.available] = available;
  out[REPLY.flowRate] = flowRate;
  out[REPLY.target] = target;
  out[REPLY.granted] = granted;
}
