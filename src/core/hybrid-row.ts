/**
 * The row of one key in hybrid mode. What a pod may spend without asking stands in two pockets: the
 * flow, refilled by time at the pod's share of the rate, and the stock, handed out of the burst by
 * the store. The first fields are those of an exact bucket (`bucket-table.ts`), which the fallback
 * uses. A row that has nothing going on rests (`rested-rows.ts`): a field that is added here must
 * be known there. See docs/design.md for the rule; instants are this pod's monotonic time.
 */

/** Flow tokens held (a double), the instant they were computed for, their rate and most. */
export const FLOW = 3;
export const FLOW_AT = 4;
export const FLOW_RATE = 5;
export const FLOW_MAX = 6;
/** Stock held, whole tokens, and the part of it that needs no fresh knowledge. */
export const STOCK = 7;
export const COLD = 8;
/** Since the last cut: admitted, asked for, stock spent, stock given up. */
export const UNREPORTED = 9;
export const DEMAND = 10;
export const SPENT = 11;
export const RELEASED = 12;
/** Largest cost refused lately and not admitted since, and when it was refused. */
export const WANT = 13;
export const WANT_AT = 14;
/** Own decayed demand and store time as the last reply told them; 0 before the first. */
export const OWN_DEMAND = 15;
export const REPLIED_AT = 16;
/** This pod's share as the last reply told it. */
export const SHARE = 17;
/** First send of the last answered batch: the age of all knowledge about the key. */
export const ASKED_AT = 18;
/** Level, and level less the reserve, as the last reply told them, and when it was heard. */
export const LEVEL = 19;
export const AVAILABLE = 20;
export const HEARD_AT = 21;
/** How long stock may be used after `ASKED_AT`. */
export const STOCK_US = 22;
/** Stock after the last reply: half of it spent is worth a report. */
export const CREDIT = 23;
export const CUT_AT = 24;
/** When an early reconcile was last triggered. */
export const TRIGGERED_AT = 25;
/** Tokens in the unanswered batch. */
export const IN_FLIGHT_TOKENS = 26;
/** Epoch of the lane when the key was last told about. */
export const EPOCH = 27;
/** Fallback: when the key was first decided by it, 0 when that is settled; pods assumed. */
export const ISOLATED_AT = 28;
export const FALLBACK_PODS = 29;
/**
 * 1 when the stock that is held stands in the ledger slot of `REPLIED_AT`. After a repeated reply
 * it does not: the store registered it at a time that the pod was never told.
 */
export const REGISTERED = 30;
export const HYBRID_ROW = 31;
