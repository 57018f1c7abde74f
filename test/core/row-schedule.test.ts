import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BucketTable, DUE, HELD, IN_FLIGHT } from "../../src/core/bucket-table.ts";
import { ENTRY_FIELDS } from "../../src/core/exchange.ts";
import { HeldChecks } from "../../src/core/held-checks.ts";
import { HybridBuckets } from "../../src/core/hybrid.ts";
import { cutRow } from "../../src/core/hybrid-exchange.ts";
import { CREDIT, CUT_AT, FLOW_RATE, HYBRID_ROW, UNREPORTED } from "../../src/core/hybrid-row.ts";
import { Lane } from "../../src/core/lane.ts";
import { RestedRows } from "../../src/core/rested-rows.ts";
import { RowSchedule } from "../../src/core/row-schedule.ts";
import { Tally } from "../../src/core/tally.ts";
import { limitOf, MS } from "../support/virtual-fleet.ts";

const LIMIT = limitOf({ tokens: 100, burst: 100 });
const half = (): number => 0.5;

/** A schedule over rows whose checks and cuts are made by hand. */
class Scheduled {
  readonly table = new BucketTable(HYBRID_ROW, 100, new RestedRows());
  readonly hybrid = new HybridBuckets(this.table);
  readonly lane = new Lane(0);
  readonly schedule = new RowSchedule(this.table, this.hybrid, new HeldChecks(), [this.lane]);
  readonly #book = { limit: LIMIT, slots: new Map<string, number>(), tally: new Tally() };
  now = 0;

  open(key: string, limit = LIMIT): number {
    const slot = this.table.add(this.#book, limit, key, this.now);
    this.hybrid.open(this.table.at(slot), limit, 1, 40, this.now);
    return slot;
  }

  spend(slot: number, limit = LIMIT): void {
    const at = this.table.at(slot);
    this.hybrid.take(at, 1);
    this.schedule.markSpent(slot, at, limit, this.now);
  }

  /** @returns The rows that became due. */
  turn(): number[] {
    this.schedule.turn(this.now, half);
    const due: number[] = [];
    for (let slot = this.lane.due.shift(); slot !== undefined; slot = this.lane.due.shift()) {
      this.table.flags[slot] = (this.table.flags[slot] as number) & ~(DUE | HELD | IN_FLIGHT);
      due.push(slot);
    }
    return due;
  }

  cut(slot: number): void {
    const terms = { now: this.now, rttUs: MS, epoch: 1, heldCost: 0, leaving: false };
    cutRow(this.table, slot, terms, new Float64Array(ENTRY_FIELDS), 0);
  }

  /** What a look at the row's own numbers says. */
  isDue(slot: number): boolean {
    const at = this.table.at(slot);
    const cell = (field: number): number => this.table.cells[at + field] as number;
    const enough = Math.max(1, Math.min(cell(CREDIT) / 2, cell(FLOW_RATE) / 10));
    const isLate = cell(UNREPORTED) > 0 && this.now - cell(CUT_AT) >= 1_000 * MS;
    return cell(UNREPORTED) >= enough || isLate;
  }
}

describe("the schedule of a row", () => {
  it("makes exactly those rows due that have enough to say, whichever it looks at", () => {
    // Each turn: which rows are asked for, which is cut out of turn, which gets another rate.
    const step = fc.record({
      spent: fc.array(fc.nat(5), { maxLength: 12 }),
      cut: fc.option(fc.nat(5), { freq: 4 }),
      rated: fc.option(fc.record({ slot: fc.nat(5), rate: fc.nat(200) }), { freq: 4 }),
      pauseMs: fc.constantFrom(1, 40, 100, 110, 350),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const pod = new Scheduled();
        const slots = Array.from({ length: 6 }, (_, index) => pod.open(`key-${index}`));
        for (const { spent, cut, rated, pauseMs } of steps) {
          for (const slot of spent) pod.spend(slot);
          if (cut !== null) pod.cut(cut);
          if (rated !== null) {
            pod.table.cells[pod.table.at(rated.slot) + FLOW_RATE] = rated.rate;
            pod.table.markChanged(rated.slot);
          }
          pod.now += pauseMs * MS;
          const isTurn = pod.schedule.nextAt <= pod.now;
          const expected = isTurn ? slots.filter((slot) => pod.isDue(slot)) : [];
          const due = pod.turn();
          expect(due.toSorted()).toEqual(expected);
          for (const slot of due) pod.cut(slot);
        }
      }),
    );
  });

  it("asks for no more turns once every row has told what it had to say", () => {
    const pod = new Scheduled();
    const slot = pod.open("a");
    pod.spend(slot);
    pod.now += 100 * MS;
    expect(pod.turn()).toEqual([]);
    expect(pod.schedule.nextAt).toBe(200 * MS);
    pod.cut(slot);
    pod.now += 100 * MS;
    expect(pod.turn()).toEqual([]);
    expect(pod.schedule.nextAt).toBe(Number.POSITIVE_INFINITY);
  });

  it("does not keep a key waiting for what was foreseen of another that had its slot", () => {
    const slow = limitOf({ tokens: 100, burst: 1_000, intervalUs: 1_000 * MS });
    const pod = new Scheduled();
    const first = pod.open("a", slow);
    pod.spend(first, slow);
    pod.table.remove(first);
    const second = pod.open("b");
    expect(second).toBe(first);
    pod.spend(second);
    pod.now += 1_000 * MS;
    expect(pod.turn()).toEqual([second]);
  });
});
