import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ANSWERED, BucketTable, USED_AT } from "../../src/core/bucket-table.ts";
import { ENTRY_FIELDS, REPLY, REPLY_FIELDS } from "../../src/core/exchange.ts";
import { Housekeeping, type HousekeepingParts } from "../../src/core/housekeeping.ts";
import { HybridBuckets } from "../../src/core/hybrid.ts";
import { applyReply, cutRow } from "../../src/core/hybrid-exchange.ts";
import {
  AVAILABLE,
  HYBRID_ROW,
  RELEASED,
  TRIGGERED_AT,
  UNREPORTED,
  WANT,
} from "../../src/core/hybrid-row.ts";
import { RestedRows } from "../../src/core/rested-rows.ts";
import { Tally } from "../../src/core/tally.ts";
import { limitOf, MS, SECOND } from "../support/virtual-fleet.ts";

const LIMIT = limitOf({ tokens: 100, burst: 100 });
const ASKED_US = SECOND;
const HEARD_US = SECOND + 3 * MS;

/** A table with rows that were reconciled: opened, cut and answered. */
class Reconciled {
  readonly table = new BucketTable(HYBRID_ROW, 100, new RestedRows());
  readonly #hybrid = new HybridBuckets(this.table);
  readonly #book = { limit: LIMIT, slots: new Map<string, number>(), tally: new Tally() };

  add(key: string, reply: Partial<Record<keyof typeof REPLY, number>> = {}): number {
    const { table } = this;
    const openedUs = ASKED_US - 100 * MS;
    const slot = table.add(this.#book, LIMIT, key, openedUs);
    const at = table.at(slot);
    this.#hybrid.open(at, LIMIT, 4, 2, openedUs);
    this.#hybrid.take(at, 1);
    const sent = new Float64Array(ENTRY_FIELDS);
    const terms = { now: ASKED_US, rttUs: MS, epoch: 7, heldCost: 0, leaving: false };
    cutRow(table, slot, terms, sent, 0);
    const usedAt = table.usedAt(slot);
    this.#hybrid.touch(at, HEARD_US, this.#hybrid.flowRate(at));
    table.cells[at + USED_AT] = usedAt;
    const answer = new Float64Array(REPLY_FIELDS);
    const told = { level: 80, available: 70, flowRate: 25, target: 20, granted: 9, share: 0.25 };
    for (const [name, value] of Object.entries({ ...told, stockSeconds: 0.3, ...reply })) {
      answer[REPLY[name as keyof typeof REPLY]] = value;
    }
    const heard = { now: HEARD_US, sentAt: ASKED_US, storeNow: 9 * SECOND, epoch: 7 };
    applyReply(
      table,
      slot,
      { ...heard, duplicate: false, late: false, otherShape: false },
      answer,
      0,
      sent,
      0,
    );
    return slot;
  }

  row(slot: number): number[] {
    const at = this.table.at(slot);
    return [...this.table.cells.subarray(at, at + HYBRID_ROW)];
  }
}

describe("a hybrid row at rest", () => {
  it("wakes as the very row that it was, whatever the store told", () => {
    const number = fc.double({ min: 0, max: 1e9, noNaN: true });
    const told = fc.record({
      level: fc.double({ min: -1e9, max: 1e9, noNaN: true }),
      available: number,
      flowRate: number,
      target: fc.nat(),
      granted: fc.nat(),
      share: fc.double({ min: 1e-6, max: 1, noNaN: true }),
      ownDemand: number,
      stockSeconds: number,
    });
    fc.assert(
      fc.property(fc.array(told, { minLength: 1, maxLength: 20 }), (replies) => {
        const pod = new Reconciled();
        const slots = replies.map((reply, index) => pod.add(`key-${index}`, reply));
        const before = slots.map((slot) => pod.row(slot));
        for (const slot of slots) pod.table.rest(slot, HEARD_US);
        for (const slot of slots) pod.table.wake(slot);
        expect(slots.map((slot) => pod.row(slot))).toEqual(before);
      }),
    );
  });

  it("gives its cells to others, and still tells when it was used", () => {
    const pod = new Reconciled();
    const slot = pod.add("a");
    const usedAt = pod.table.usedAt(slot);
    pod.table.rest(slot, HEARD_US);
    expect(pod.table.isAwake(slot)).toBe(false);
    expect(pod.table.awake).toBe(0);
    expect(pod.table.usedAt(slot)).toBe(usedAt);
    expect(pod.table.rested.share(slot)).toBe(0.25);
    expect(pod.table.rested.level(slot)).toBe(80);
    expect(() => pod.table.at(slot)).toThrow("rests");
  });

  it.each([
    { name: "an unreported token", field: UNREPORTED, value: 1 },
    { name: "stock to give back", field: RELEASED, value: 3 },
    { name: "a refused cost", field: WANT, value: 2 },
    { name: "an early reconcile of a moment ago", field: TRIGGERED_AT, value: HEARD_US - MS },
    { name: "a use after the reply", field: USED_AT, value: HEARD_US + MS },
  ])("stays awake with $name", ({ field, value }) => {
    const pod = new Reconciled();
    const slot = pod.add("a");
    pod.table.cells[pod.table.at(slot) + field] = value;
    const before = pod.row(slot);
    pod.table.rest(slot, HEARD_US);
    expect(pod.table.isAwake(slot)).toBe(true);
    expect(pod.row(slot)).toEqual(before);
  });

  it("stays awake while the store has told nothing about it", () => {
    const pod = new Reconciled();
    const slot = pod.add("a");
    pod.table.flags[slot] = (pod.table.flags[slot] as number) & ~ANSWERED;
    pod.table.rest(slot, HEARD_US);
    expect(pod.table.isAwake(slot)).toBe(true);
  });

  it("sleeps on through a reload that changes nothing about it, and wakes for one that does", () => {
    const pod = new Reconciled();
    const slot = pod.add("a");
    pod.table.rest(slot, HEARD_US);
    const parts = { sole: false, table: pod.table, hybrid: new HybridBuckets(pod.table) };
    const housekeeping = new Housekeeping(parts as unknown as HousekeepingParts, HEARD_US);
    const same = limitOf({ tokens: 100, burst: 100 }, { margin: 0.5 });
    housekeeping.relimit(slot, same, HEARD_US);
    expect(pod.table.awake).toBe(0);
    expect(pod.table.limitOf(slot)).toBe(same);
    housekeeping.relimit(slot, limitOf({ tokens: 100, burst: 50 }), HEARD_US);
    expect(pod.table.awake).toBe(1);
    expect(pod.row(slot)[AVAILABLE]).toBe(35);
  });

  it("stays awake after a reply while its key is in use, until it has been idle for a while", () => {
    const pod = new Reconciled();
    const [once, again] = [pod.add("once"), pod.add("again")] as const;
    pod.table.awaken(again);
    for (const slot of [once, again]) pod.table.restUnlessInUse(slot, HEARD_US);
    expect([once, again].map((slot) => pod.table.isAwake(slot))).toEqual([false, true]);
    const calls = { holdsLease: () => false };
    const parts = { sole: false, table: pod.table, calls };
    const housekeeping = new Housekeeping(parts as unknown as HousekeepingParts, HEARD_US);
    for (let now = HEARD_US; now < HEARD_US + SECOND / 2; now += 10 * MS) housekeeping.sweep(now);
    expect(pod.table.isAwake(again)).toBe(true);
    for (let now = HEARD_US; now < HEARD_US + 2 * SECOND; now += 10 * MS) housekeeping.sweep(now);
    expect(pod.table.isAwake(again)).toBe(false);
  });

  it("leaves nothing behind when it is removed, and its slot serves another key", () => {
    const pod = new Reconciled();
    for (let turn = 0; turn < 1_000; turn += 1) {
      const slots = ["a", "b"].map((key) => pod.add(`${key}-${turn}`));
      for (const slot of slots) pod.table.rest(slot, HEARD_US);
      for (const slot of slots) pod.table.remove(slot);
    }
    expect(pod.table.size).toBe(0);
    expect(pod.table.rows).toBe(2);
    expect(pod.table.awake).toBe(0);
  });
});
