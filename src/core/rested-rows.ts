/**
 * Hybrid rows at rest, in a quarter of the space.
 *
 * Most of a hybrid row is about what goes on: what was admitted since the last report, what is
 * under way, what was refused. A key that has been reconciled and not asked for since has none of
 * it, and the rest of its row is what the last reply told. A row rests only when that is true to
 * the last bit, so that waking it gives the very row back; what does not fit stays awake.
 */
import { DEFICIT, DEFICIT_TICKS, USED_AT } from "./bucket-table.ts";
import { isFullAtDerived, noteFullAt } from "./full-at.ts";
import { flowMax, TRIGGER_GAP_US } from "./hybrid.ts";
import {
  ASKED_AT,
  AVAILABLE,
  COLD,
  CREDIT,
  CUT_AT,
  DEMAND,
  EPOCH,
  FALLBACK_PODS,
  FLOW,
  FLOW_AT,
  FLOW_MAX,
  FLOW_RATE,
  HEARD_AT,
  HYBRID_ROW,
  IN_FLIGHT_TOKENS,
  ISOLATED_AT,
  LEVEL,
  OWN_DEMAND,
  REGISTERED,
  RELEASED,
  REPLIED_AT,
  SHARE,
  SPENT,
  STOCK,
  STOCK_US,
  TRIGGERED_AT,
  UNREPORTED,
  WANT,
} from "./hybrid-row.ts";
import type { Limit } from "./limit.ts";
import { NO_TIDING, TIDING, Tidings } from "./tidings.ts";
import type { InstantUs, Tokens } from "./units.ts";

/** Fields that are 0 at rest; `WANT_AT` means nothing without `WANT`. */
const ZERO = [
  DEFICIT,
  DEFICIT_TICKS,
  UNREPORTED,
  DEMAND,
  SPENT,
  RELEASED,
  WANT,
  IN_FLIGHT_TOKENS,
  ISOLATED_AT,
  FALLBACK_PODS,
] as const;

/** Fields kept as they are. */
const KEPT = [FLOW, FLOW_RATE, OWN_DEMAND, SHARE, LEVEL, AVAILABLE] as const;
const KEPT_SHARE = KEPT.indexOf(SHARE);
const KEPT_LEVEL = KEPT.indexOf(LEVEL);

/** Whole numbers of 32 bits: stock, time from the last use to the last reply. */
const WHOLE = 2;
const WHOLE_STOCK = 0;
const WHOLE_UNUSED = 1;

export class RestedRows {
  readonly #tidings = new Tidings();
  #kept = new Float64Array(0);
  #whole = new Uint32Array(0);

  /** Makes room for so many slots. */
  grow(slots: number): void {
    const kept = new Float64Array(slots * KEPT.length);
    kept.set(this.#kept);
    this.#kept = kept;
    const whole = new Uint32Array(slots * WHOLE);
    whole.set(this.#whole);
    this.#whole = whole;
  }

  /**
   * Puts a row to rest.
   *
   * @returns The number of its tiding, which belongs to the row now; or `NO_TIDING`, and nothing
   *   was done.
   */
  pack(slot: number, cells: Float64Array, at: number, limit: Limit, now: InstantUs): number {
    for (const field of ZERO) if (cells[at + field] !== 0) return NO_TIDING;
    const stock = cells[at + STOCK] as number;
    const heardAt = cells[at + HEARD_AT] as number;
    const askedAt = cells[at + ASKED_AT] as number;
    const unused = heardAt - (cells[at + USED_AT] as number);
    const rate = cells[at + FLOW_RATE] as number;
    const isDerived =
      cells[at + CREDIT] === stock &&
      cells[at + CUT_AT] === askedAt &&
      cells[at + FLOW_AT] === heardAt &&
      cells[at + FLOW_MAX] === flowMax(limit, rate) &&
      isFullAtDerived(cells, at, limit) &&
      now - (cells[at + TRIGGERED_AT] as number) >= TRIGGER_GAP_US;
    if (!isDerived || !isWhole(stock) || !isWhole(unused)) return NO_TIDING;
    // An instant is a difference of two, which is exact for whole microseconds only.
    if (heardAt - unused !== cells[at + USED_AT]) return NO_TIDING;
    const whole = slot * WHOLE;
    this.#whole[whole + WHOLE_STOCK] = stock;
    this.#whole[whole + WHOLE_UNUSED] = unused;
    const kept = slot * KEPT.length;
    for (let i = 0; i < KEPT.length; i += 1) {
      this.#kept[kept + i] = cells[at + (KEPT[i] as number)] as number;
    }
    const { next } = this.#tidings;
    next[TIDING.repliedAt] = cells[at + REPLIED_AT] as number;
    next[TIDING.askedAt] = askedAt;
    next[TIDING.heardAt] = heardAt;
    next[TIDING.epoch] = cells[at + EPOCH] as number;
    next[TIDING.registered] = cells[at + REGISTERED] as number;
    next[TIDING.stockUs] = cells[at + STOCK_US] as number;
    next[TIDING.cold] = cells[at + COLD] as number;
    return this.#tidings.take();
  }

  /** Writes the row as it was, and takes its tiding back. */
  unpack(slot: number, id: number, cells: Float64Array, at: number, limit: Limit): void {
    cells.fill(0, at, at + HYBRID_ROW);
    const kept = slot * KEPT.length;
    for (let i = 0; i < KEPT.length; i += 1) {
      cells[at + (KEPT[i] as number)] = this.#kept[kept + i] as number;
    }
    const whole = slot * WHOLE;
    const stock = this.#whole[whole + WHOLE_STOCK] as number;
    cells[at + STOCK] = stock;
    cells[at + CREDIT] = stock;
    cells[at + FLOW_MAX] = flowMax(limit, cells[at + FLOW_RATE] as number);
    cells[at + TRIGGERED_AT] = Number.NEGATIVE_INFINITY;
    const askedAt = this.#tidings.of(id, TIDING.askedAt);
    const heardAt = this.#tidings.of(id, TIDING.heardAt);
    cells[at + COLD] = this.#tidings.of(id, TIDING.cold);
    cells[at + REPLIED_AT] = this.#tidings.of(id, TIDING.repliedAt);
    cells[at + ASKED_AT] = askedAt;
    cells[at + CUT_AT] = askedAt;
    cells[at + HEARD_AT] = heardAt;
    cells[at + FLOW_AT] = heardAt;
    cells[at + EPOCH] = this.#tidings.of(id, TIDING.epoch);
    cells[at + REGISTERED] = this.#tidings.of(id, TIDING.registered);
    cells[at + STOCK_US] = this.#tidings.of(id, TIDING.stockUs);
    cells[at + USED_AT] = this.usedAt(slot, id);
    noteFullAt(cells, at, limit, cells, at + LEVEL);
    this.drop(id);
  }

  /** The row at rest with this tiding is gone. */
  drop(id: number): void {
    this.#tidings.drop(id);
  }

  usedAt(slot: number, id: number): InstantUs {
    const heardAt = this.#tidings.of(id, TIDING.heardAt);
    return heardAt - (this.#whole[slot * WHOLE + WHOLE_UNUSED] as number);
  }

  share(slot: number): number {
    return this.#kept[slot * KEPT.length + KEPT_SHARE] as number;
  }

  level(slot: number): Tokens {
    return this.#kept[slot * KEPT.length + KEPT_LEVEL] as number;
  }
}

function isWhole(value: number): boolean {
  return value >>> 0 === value;
}
