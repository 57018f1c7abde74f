/**
 * When a row speaks to the store.
 *
 * A row with something to say is `dirty`: its cadence looks at it once an interval. When it has
 * enough to say, or at once when stock runs low or a check was denied, it is `due`: the next batch
 * of its lane takes it along.
 */
import { type BucketTable, DENIED, DIRTY, DUE, HELD, IN_FLIGHT } from "./bucket-table.ts";
import { Cadence } from "./cadence.ts";
import type { HeldChecks } from "./held-checks.ts";
import { type HybridBuckets, TRIGGER_GAP_US } from "./hybrid.ts";
import { CREDIT, CUT_AT, FLOW_RATE, TRIGGERED_AT, UNREPORTED } from "./hybrid-row.ts";
import type { Lane } from "./lane.ts";
import { type DurationUs, type InstantUs, US_PER_MS, US_PER_SECOND } from "./units.ts";

/** A report is sent after this many intervals even when it is small. */
const PATIENT_INTERVALS = 10;
/** A denial is reported by the tick that comes about an interval after the last report. */
const DENIED_PART = 0.8;

/** Pauses are measured in intervals; until a key had something to say, in this one. */
const INTERVAL_START_US: DurationUs = 100 * US_PER_MS;

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

  /** The row has something to say, sooner or later. */
  markDirty(slot: number, now: InstantUs): void {
    const flags = this.#table.flags[slot] as number;
    if ((flags & DIRTY) !== 0) return;
    this.#table.flags[slot] = flags | DIRTY;
    this.#cadence(this.#table.limitOf(slot).intervalUs, now).add(slot, now);
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
  triggerSoon(slot: number, now: InstantUs): void {
    const at = this.#table.at(slot) + TRIGGERED_AT;
    if (now - (this.#table.cells[at] as number) < TRIGGER_GAP_US) return;
    // The batch under way brings news of this row; what it does not settle, the next tick sees.
    if (((this.#table.flags[slot] as number) & IN_FLIGHT) !== 0) return;
    this.#table.cells[at] = now;
    this.markDue(slot);
  }

  /** A check was denied: once an interval, or at once when knowledge is old. */
  triggerDenied(slot: number, now: InstantUs): void {
    const limit = this.#table.limitOf(slot);
    this.#table.flags[slot] = (this.#table.flags[slot] as number) | DENIED;
    this.markDirty(slot, now);
    const sinceCut = now - (this.#table.cells[this.#table.at(slot) + CUT_AT] as number);
    if (this.#hybrid.isStale(slot, limit, now)) this.triggerSoon(slot, now);
    else if (sinceCut >= limit.intervalUs) this.markDue(slot);
  }

  /** Looks at the dirty rows whose time has come. */
  turn(now: InstantUs, draw: () => number): void {
    for (const cadence of this.#cadences.values()) {
      if (cadence.nextAt > now) continue;
      for (const slot of cadence.turn(now, draw())) this.#inspect(slot, now);
    }
  }

  #inspect(slot: number, now: InstantUs): void {
    this.#table.flags[slot] = (this.#table.flags[slot] as number) & ~DIRTY;
    if (!this.#table.isLive(slot) || !this.#table.isAwake(slot)) return;
    const { cells } = this.#table;
    const at = this.#table.at(slot);
    const { intervalUs } = this.#table.limitOf(slot);
    const unreported = Math.abs(cells[at + UNREPORTED] as number);
    const isDenied = ((this.#table.flags[slot] as number) & DENIED) !== 0;
    const sinceCut = now - (cells[at + CUT_AT] as number);
    const flow = ((cells[at + FLOW_RATE] as number) * intervalUs) / US_PER_SECOND;
    const isDue =
      (isDenied && sinceCut >= DENIED_PART * intervalUs) ||
      unreported >= Math.max(1, Math.min((cells[at + CREDIT] as number) / 2, flow)) ||
      (unreported !== 0 && sinceCut >= PATIENT_INTERVALS * intervalUs);
    const hasLease = this.inspectLease(slot, now);
    if (isDue) this.markDue(slot);
    else if (unreported !== 0 || isDenied) this.markDirty(slot, now);
    if (hasLease) this.markDirty(slot, now);
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
