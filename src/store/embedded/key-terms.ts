/**
 * The terms of a limit as the state of its keys needs them. Twin of `set_limit` in
 * `lua/lib/key-state.lua`.
 */
import { LEASE_SLOT_US } from "../../core/store-call.ts";
import type { DurationUs, InstantUs, Tokens } from "../../core/units.ts";
import { max } from "./arithmetic.ts";

/** After a loss a strict limit admits nothing until every lease that may be out is void. */
export const STRICT_HOLD_US: DurationUs = 1_000_000;
/** A take is young in its slot of time and the next. */
const TAKE_SLOT_US = 100_000;

/** The limit in hand, as an entry tells it. */
export interface KeyTerms {
  refill: number;
  period: number;
  tickUs: number;
  burst: Tokens;
  maxDebt: Tokens;
  /** Part of the burst that an absent key starts with after a loss; 0 makes the limit strict. */
  lost: number;
  /** Time constant of the estimates, seconds. */
  tau: number;
  ledgerSlotUs: DurationUs;
  /** Half a lease, and never shorter than a tick, in which time stands still. */
  leaseSlotUs: DurationUs;
  takeSlotUs: DurationUs;
  /** Part of the refill held back. */
  hold: number;
  /** Tokens per second. */
  rate: number;
}

/** What the lane's record knows of losses and changes; instants, 0 for never. */
export interface Losses {
  readonly lostAt: InstantUs;
  readonly movedAt: InstantUs;
  /** A key was put under other terms, or replaced; written by `open`. */
  changedAt: InstantUs;
}

/** The terms of a limit as the fields of an entry tell them. */
export function termsOf(
  shape: Pick<KeyTerms, "refill" | "period" | "tickUs" | "burst" | "maxDebt">,
  intervalSeconds: number,
  lost: number,
  hold: number,
): KeyTerms {
  return {
    ...shape,
    lost,
    hold,
    tau: 5 * intervalSeconds,
    ledgerSlotUs: Math.floor(3 * intervalSeconds * 1e6 + 0.5),
    leaseSlotUs: max(LEASE_SLOT_US, shape.tickUs),
    takeSlotUs: max(TAKE_SLOT_US, shape.tickUs),
    rate: (shape.refill / shape.period) * (1e6 / shape.tickUs),
  };
}

/** The instant from which a strict limit refills again after a loss. */
export function strictFrom(lostAt: InstantUs, terms: KeyTerms): InstantUs {
  return Math.ceil((lostAt + STRICT_HOLD_US) / terms.tickUs) * terms.tickUs;
}
