/**
 * When a row speaks to the store.
 *
 * A row with something to say is `dirty`: its cadence looks at it once an interval. When it has
 * enough to say, or at once when stock runs low or a check was denied, it is `due`: the next batch
 * of its lane takes it along.
 *
 * Most dirty rows have little to say, and nothing but a check or a reply changes that before they
 * have waited for long enough. Both are near the row's cells anyway, so they mark it (`LOOK`), and
 * a turn of the cadence passes rows that are not marked by without touching them.
 */
import {
  type BucketTable,
  DENIED,
  DIRTY,
  DUE,
  FALLBACK,
  HELD,
  IN_FLIGHT,
  LOOK,
} from "./bucket-table.ts";
import { Cadence } from "./cadence.ts";
import type { HeldChecks } from "./held-checks.ts";
import { type HybridBuckets, TRIGGER_GAP_US } from "./hybrid.ts";
import { CREDIT, CUT_AT, FLOW_RATE, TRIGGERED_AT, UNREPORTED } from "./hybrid-row.ts";
import type { Lane } from "./lane.ts";
import type { Limit } from "./limit.ts";
import { type DurationUs, type InstantUs, US_PER_MS, US_PER_SECOND } from "./units.ts";

/** A report is sent after this many intervals even when it is small. */
const PATIENT_INTERVALS = 10;
/** A denial is reported by the tick that comes about an interval after the last report. */
const DENIED_PART = 0.8;

/** Pauses are measured in intervals; until a key had something to say, in this one. */
const INTERVAL_START_US: DurationUs = 100 * US_PER_MS;

const DENIED_AND_LISTED = DENIED | DIRTY | LOOK;

export class RowSchedule {
  readonly #table: BucketTable;
  readonly #hybrid: HybridBuckets;
  readonly #held: HeldChecks;
  readonly #lanes: readonly Lane[];
  readonly #cadences = new Map<DurationUs, Cadence>();
  #longestIntervalUs: DurationUs = INTERVAL_START_US;
  /** Looks at the leases of a row. @returns Whether to look again. */
  inspectLease: (slot: number, now: InstantUs) => boolean = () => false;
  /** A row became due in a lane that may be able to send at once. */
  isEager = false;

  constructor(table: BucketTable, hybrid: HybridBuckets, held: HeldChecks, lanes: readonly Lane[]) {
    this.#table = table;
    this.#hybrid = hybrid;
    this.#held = held;
    this.#lanes = lanes;
  }

  get longestIntervalUs(): DurationUs {
    return this.#longestIntervalUs;
  }

  /** When dirty rows are looked at next. */
  get nextAt(): InstantUs {
    let at = Number.POSITIVE_INFINITY;
    for (const cadence of this.#cadences.values()) at = Math.min(at, cadence.nextAt);
    return at;
  }

  laneOf(slot: number): Lane {
    return this.#lanes[this.#table.lanes[slot] as number] as Lane;
  }

  /** The row has something to say, and is looked at by the next turn. */
  markDirty(slot: number, now: InstantUs): void {
    const flags = this.#table.flags[slot] as number;
    this.#table.flags[slot] = flags | DIRTY | LOOK;
    if ((flags & DIRTY) !== 0) return;
    this.#cadence(this.#table.limitOf(slot).intervalUs, now).add(slot, now, now);
  }

  /** The same after a check of a hybrid row was admitted: it is looked at when that is enough. */
  markSpent(slot: number, at: number, limit: Limit, now: InstantUs): void {
    const flags = this.#table.flags[slot] as number;
    const isEnough = hasEnough(this.#table.cells, at, limit.intervalUs);
    if ((flags & DIRTY) !== 0) {
      if (isEnough && (flags & LOOK) === 0) this.#table.flags[slot] = flags | LOOK;
      return;
    }
    this.#table.flags[slot] = isEnough ? flags | DIRTY | LOOK : (flags | DIRTY) & ~LOOK;
    const lookAt = this.#patientUntil(at, limit.intervalUs);
    this.#cadence(limit.intervalUs, now).add(slot, lookAt, now);
  }

  /** The row goes into the next batch of its lane; with held checks it goes first. */
  markDue(slot: number): void {
    const flags = this.#table.flags[slot] as number;
    const becomesUrgent = (flags & HELD) === 0 && this.#held.isWaitedFor(slot);
    // A row may stand in both queues; the first to come up takes it.
    if ((flags & DUE) !== 0 && !becomesUrgent) return;
    this.#table.flags[slot] = flags | DUE | (becomesUrgent ? HELD : 0);
    const lane = this.laneOf(slot);
    (becomesUrgent ? lane.urgent : lane.due).push(slot);
    if (lane.phase === "free") this.isEager = true;
  }

  /** Stock ran low, or old knowledge denied a check: at once, but not in too quick succession. */
  triggerSoon(slot: number, at: number, now: InstantUs): void {
    const { cells } = this.#table;
    if (now - (cells[at + TRIGGERED_AT] as number) < TRIGGER_GAP_US) return;
    // The batch under way brings news of this row; what it does not settle, the next tick sees.
    if (((this.#table.flags[slot] as number) & IN_FLIGHT) !== 0) return;
    cells[at + TRIGGERED_AT] = now;
    this.markDue(slot);
  }

  /** A check was denied: once an interval, or at once when knowledge is old. */
  triggerDenied(slot: number, at: number, limit: Limit, now: InstantUs): void {
    const flags = this.#table.flags[slot] as number;
    if ((flags & DENIED_AND_LISTED) !== DENIED_AND_LISTED) {
      this.#table.flags[slot] = flags | DENIED;
      this.markDirty(slot, now);
    }
    const sinceCut = now - (this.#table.cells[at + CUT_AT] as number);
    if (this.#hybrid.isStale(at, limit, now)) this.triggerSoon(slot, at, now);
    else if (sinceCut >= limit.intervalUs) this.markDue(slot);
  }

  /** Looks at the dirty rows whose time has come. */
  turn(now: InstantUs, draw: () => number): void {
    for (const cadence of this.#cadences.values()) {
      if (cadence.nextAt > now) continue;
      const from = cadence.turn(now, draw());
      for (let i = from; i < cadence.turned; i += 1) {
        const slot = cadence.slotAt(i);
        const lookAt = cadence.lookAtOf(i);
        const isMarked = ((this.#table.flags[slot] as number) & LOOK) !== 0;
        if (isMarked || lookAt <= now) this.#inspect(slot, now);
        else cadence.add(slot, lookAt, now);
      }
    }
  }

  #inspect(slot: number, now: InstantUs): void {
    this.#table.flags[slot] = (this.#table.flags[slot] as number) & ~(DIRTY | LOOK);
    if (!this.#table.isLive(slot) || !this.#table.isAwake(slot)) return;
    const { cells } = this.#table;
    const at = this.#table.at(slot);
    const limit = this.#table.limitOf(slot);
    const { intervalUs } = limit;
    const hasUnreported = cells[at + UNREPORTED] !== 0;
    const isDenied = ((this.#table.flags[slot] as number) & DENIED) !== 0;
    const sinceCut = now - (cells[at + CUT_AT] as number);
    const isDue =
      (isDenied && sinceCut >= DENIED_PART * intervalUs) ||
      hasEnough(cells, at, intervalUs) ||
      (hasUnreported && sinceCut >= PATIENT_INTERVALS * intervalUs);
    const hasLease = this.inspectLease(slot, now);
    if (isDue) this.markDue(slot);
    else if (isDenied || hasUnreported) this.#lookAgain(slot, at, limit, now);
    if (hasLease) this.markDirty(slot, now);
  }

  #lookAgain(slot: number, at: number, limit: Limit, now: InstantUs): void {
    const isForeseen =
      limit.mode === "hybrid" && ((this.#table.flags[slot] as number) & (DENIED | FALLBACK)) === 0;
    if (isForeseen) this.markSpent(slot, at, limit, now);
    else this.markDirty(slot, now);
  }

  /** The first instant at which patience may end; a rounding error earlier does no harm. */
  #patientUntil(at: number, intervalUs: DurationUs): InstantUs {
    return (this.#table.cells[at + CUT_AT] as number) + PATIENT_INTERVALS * intervalUs - 1;
  }

  #cadence(intervalUs: DurationUs, now: InstantUs): Cadence {
    let cadence = this.#cadences.get(intervalUs);
    if (cadence === undefined) {
      cadence = new Cadence(intervalUs, now);
      this.#cadences.set(intervalUs, cadence);
      this.#longestIntervalUs = Math.max(this.#longestIntervalUs, intervalUs);
    }
    return cadence;
  }
}

/** The row has enough to say for a report: an interval's flow, or half of the stock it got. */
function hasEnough(cells: Float64Array, at: number, intervalUs: DurationUs): boolean {
  const unreported = Math.abs(cells[at + UNREPORTED] as number);
  const flow = ((cells[at + FLOW_RATE] as number) * intervalUs) / US_PER_SECOND;
  return unreported >= Math.max(1, Math.min((cells[at + CREDIT] as number) / 2, flow));
}
