/**
 * The row of one key in hybrid mode. What a pod may spend without asking stands in two pockets: the
 * flow, refilled by time at the pod's share of the rate, and the stock, handed out of the burst by
 * the store. The first fields are those of an exact bucket (`bucket-table.ts`), which the fallback
 * uses. A row that has nothing going on rests (`rested-rows.ts`): a field that is added here must
 * be known there. See docs/design.md for the rule; instants are this pod's monotonic time.
 *
 * Fields that every check reads come first, so that it needs few cache lines of a row that nobody
 * has asked for lately, and a row is four lines long.
 */

/** Flow tokens held (a double), the instant they were computed for, their rate and most. */
export const FLOW = 3;
export const FLOW_AT = 4;
export const FLOW_RATE = 5;
export const FLOW_MAX = 6;
/** Stock held, whole tokens, and the part of it that needs no fresh knowledge. */
export const STOCK = 7;
export const COLD = 8;
/** Since the last cut: admitted, asked for. */
export const UNREPORTED = 9;
export const DEMAND = 10;
/** Largest cost refused lately and not admitted since. */
export const WANT = 11;
/** Tokens in the unanswered batch. */
export const IN_FLIGHT_TOKENS = 12;
/** Level less the reserve as the last reply told it, and when it was heard. */
export const AVAILABLE = 13;
export const HEARD_AT = 14;
/** Stock after the last reply: half of it spent is worth a report. */
export const CREDIT = 15;
export const CUT_AT = 16;
/** First send of the last answered batch: the age of all knowledge about the key. */
export const ASKED_AT = 17;
/** Store time as the last reply told it; 0 before the first. */
export const REPLIED_AT = 18;
/** How long stock may be used after `ASKED_AT`. */
export const STOCK_US = 19;
/** Since the last cut: stock spent, stock given up. */
export const SPENT = 20;
export const RELEASED = 21;
/** When the cost of `WANT` was refused. */
export const WANT_AT = 22;
/** When an early reconcile was last triggered. */
export const TRIGGERED_AT = 23;
/** Own decayed demand, this pod's share and the level, as the last reply told them. */
export const OWN_DEMAND = 24;
export const SHARE = 25;
export const LEVEL = 26;
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
/**
 * Store time before which the bucket cannot be full, told under `EPOCH`; 0 when that is not known.
 */
export const FULL_AT = 31;
/** One more than there are fields. */
export const HYBRID_ROW = 32;
