/** The fallback buckets of live rows: entering, spending, and what is charged afterwards. */
import { type BucketTable, DEFICIT, DEFICIT_TICKS, FALLBACK, USED_AT } from "./bucket-table.ts";
import { deficitOf, toTicks } from "./deficit-bucket.ts";
import { deficitAt, deficitOn, rescaleExact, spendExact, touchExact } from "./exact-row.ts";
import { fallbackShape, fallbackStart, settled } from "./fallback.ts";
import {
  FALLBACK_PODS,
  FLOW,
  FLOW_AT,
  ISOLATED_AT,
  RELEASED,
  STOCK,
  UNREPORTED,
} from "./hybrid-row.ts";
import type { BucketShape, Limit } from "./limit.ts";
import { type DurationUs, type InstantUs, type Tokens, US_PER_SECOND } from "./units.ts";

/** Shapes kept at most; there is one per limit and count of pods. */
const SHAPES_MAX = 1_000;

export class FallbackBuckets {
  readonly #table: BucketTable;
  readonly #shapes = new Map<Limit, Map<number, BucketShape>>();

  constructor(table: BucketTable) {
    this.#table = table;
  }

  /**
   * Puts the row under its fallback bucket, which starts with what the pod still held; or follows a
   * changed count of pods.
   */
  enter(slot: number, pods: number, now: InstantUs): void {
    const { cells } = this.#table;
    const at = this.#table.at(slot);
    const flags = this.#table.flags[slot] as number;
    const limit = this.#table.limitOf(slot);
    if (cells[at + ISOLATED_AT] === 0) cells[at + ISOLATED_AT] = now;
    if ((flags & FALLBACK) !== 0) {
      if (cells[at + FALLBACK_PODS] !== pods) this.#follow(slot, limit, pods, now);
      return;
    }
    const held = (cells[at + FLOW] as number) + (cells[at + STOCK] as number);
    cells[at + RELEASED] = (cells[at + RELEASED] as number) + (cells[at + STOCK] as number);
    cells[at + STOCK] = 0;
    cells[at + FLOW] = 0;
    this.fill(slot, pods, held, now);
  }

  /** Puts the row under a bucket that starts with so many tokens. */
  begin(slot: number, pods: number, tokens: number, now: InstantUs): void {
    this.#table.cells[this.#table.at(slot) + ISOLATED_AT] = now;
    this.fill(slot, pods, tokens, now);
  }

  /** Puts a row that the pod has never tracked under a bucket that counts as full. */
  open(slot: number, pods: number, draw: number, now: InstantUs): void {
    this.begin(slot, pods, fallbackStart(this.#table.limitOf(slot), pods, draw), now);
  }

  /** Fills the row's bucket with so many tokens. */
  fill(slot: number, pods: number, tokens: number, now: InstantUs): void {
    const { cells } = this.#table;
    const at = this.#table.at(slot);
    const shape = this.shape(this.#table.limitOf(slot), pods);
    cells[at + DEFICIT] = deficitOf(shape, tokens);
    cells[at + DEFICIT_TICKS] = toTicks(shape, now);
    cells[at + FALLBACK_PODS] = pods;
    // Flow starts anew when the store is back: the time in between was the fallback's.
    cells[at + FLOW_AT] = now;
    this.#table.flags[slot] = (this.#table.flags[slot] as number) | FALLBACK;
  }

  /** Brings the bucket to `now`. */
  touch(slot: number, now: InstantUs): void {
    touchExact(this.#table, slot, this.shapeOf(slot), now);
    const at = this.#table.at(slot) + FLOW_AT;
    this.#table.cells[at] = Math.max(now, this.#table.cells[at] as number);
  }

  /** Spends (or, when negative, gives back) tokens; they are reported like all others. */
  spend(slot: number, cost: Tokens): void {
    spendExact(this.#table, slot, this.shapeOf(slot), cost);
    const at = this.#table.at(slot) + UNREPORTED;
    this.#table.cells[at] = (this.#table.cells[at] as number) + cost;
  }

  /**
   * The same for a leased or exact limit, whose level the store keeps to itself: after an outage so
   * long that the bucket has overflowed, what the fallback bucket has not regained is charged.
   */
  settlePrepaid(slot: number, outageUs: DurationUs, now: InstantUs): void {
    const { cells } = this.#table;
    const at = this.#table.at(slot);
    const limit = this.#table.limitOf(slot);
    if ((limit.rate * outageUs) / US_PER_SECOND <= limit.burst) return;
    this.touch(slot, now);
    const missing = Math.ceil(deficitAt(this.#table, slot) / this.shapeOf(slot).period);
    cells[at + UNREPORTED] = Math.min(cells[at + UNREPORTED] as number, missing);
  }

  /** Takes off the report what need not be charged after an outage of this length; once. */
  settle(slot: number, outageUs: DurationUs, now: InstantUs): void {
    const { cells } = this.#table;
    const at = this.#table.at(slot);
    if (cells[at + ISOLATED_AT] === 0) return;
    cells[at + ISOLATED_AT] = 0;
    const usedAt = cells[at + USED_AT] as number;
    this.touch(slot, now);
    cells[at + USED_AT] = usedAt;
    const pods = cells[at + FALLBACK_PODS] as number;
    const unreported = cells[at + UNREPORTED] as number;
    const missing = deficitAt(this.#table, slot) / this.shapeOf(slot).period;
    const forgiven = settled(this.#table.limitOf(slot), pods, unreported, missing, outageUs);
    cells[at + UNREPORTED] = unreported - forgiven;
  }

  /**
   * Puts the bucket under the changed limit, level scaled; the row's limit is still the old one.
   */
  relimit(slot: number, to: Limit, now: InstantUs): void {
    const usedAt = this.#table.cells[this.#table.at(slot) + USED_AT] as number;
    this.touch(slot, now);
    this.#table.cells[this.#table.at(slot) + USED_AT] = usedAt;
    const pods = this.#table.cells[this.#table.at(slot) + FALLBACK_PODS] as number;
    rescaleExact(this.#table, slot, this.shapeOf(slot), this.shape(to, pods), now);
  }

  /** Whether the bucket would be full at `now`; the row is left as it is. */
  wouldBeFull(slot: number, now: InstantUs): boolean {
    return deficitOn(this.#table, slot, this.shapeOf(slot), now) === 0;
  }

  shapeOf(slot: number): BucketShape {
    const pods = this.#table.cells[this.#table.at(slot) + FALLBACK_PODS] as number;
    return this.shape(this.#table.limitOf(slot), pods);
  }

  shape(limit: Limit, pods: number): BucketShape {
    let byPods = this.#shapes.get(limit);
    if (byPods === undefined) {
      if (this.#shapes.size >= SHAPES_MAX) this.#shapes.clear();
      byPods = new Map();
      this.#shapes.set(limit, byPods);
    }
    let shape = byPods.get(pods);
    if (shape === undefined) {
      if (byPods.size >= SHAPES_MAX) byPods.clear();
      shape = fallbackShape(limit, pods);
      byPods.set(pods, shape);
    }
    return shape;
  }

  #follow(slot: number, limit: Limit, pods: number, now: InstantUs): void {
    this.touch(slot, now);
    rescaleExact(this.#table, slot, this.shapeOf(slot), this.shape(limit, pods), now);
    this.#table.cells[this.#table.at(slot) + FALLBACK_PODS] = pods;
  }
}
