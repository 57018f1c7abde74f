import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BucketTable } from "../../src/core/bucket-table.ts";
import { ENTRY, ENTRY_FIELDS, REPLY, REPLY_FIELDS } from "../../src/core/exchange.ts";
import { forgetFullAt, fullAfter, knownFullAt, noteCallLevel } from "../../src/core/full-at.ts";
import { applyReply, cutRow } from "../../src/core/hybrid-exchange.ts";
import { HYBRID_ROW } from "../../src/core/hybrid-row.ts";
import { RestedRows } from "../../src/core/rested-rows.ts";
import { Tally } from "../../src/core/tally.ts";
import { limitOf, MS, SECOND } from "../support/virtual-fleet.ts";

const NOW = 1_700_000_000 * SECOND;
const LIMIT = limitOf({ tokens: 2, burst: 100 });
const EPOCH = 7;

describe("the time before which a bucket cannot be full", () => {
  it("is never later than the store's own reckoning, and at most two ticks earlier", () => {
    const limits = [
      LIMIT,
      limitOf({ tokens: 5, spanUs: 900 * SECOND, burst: 5 }),
      limitOf({ tokens: 7, spanUs: 13 * SECOND, burst: 11 }),
      limitOf({ tokens: 999_999_937, spanUs: 86_400 * SECOND, burst: 1_000_000_000 }),
    ];
    fc.assert(
      fc.property(
        fc.constantFrom(...limits),
        fc.double({ min: 0, max: 2, noNaN: true }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        ({ refill, period, tickUs, burst, maxDebt }, lacks, past) => {
          const deficit = Math.floor(lacks * burst * period);
          const at = Math.floor(NOW / tickUs) * tickUs;
          const storeNow = at + Math.floor(past * tickUs);
          const full = at + Math.ceil(deficit / refill) * tickUs;
          const shape = { refill, period, tickUs, burst, maxDebt };
          const told = fullAfter(shape, burst - deficit / period, storeNow);
          expect(told).toBeLessThanOrEqual(full);
          if (told > 0) expect(told).toBeGreaterThanOrEqual(full - 2 * tickUs);
          else expect(full).toBeLessThanOrEqual(at + 2 * tickUs);
        },
      ),
    );
  });
});

/** A row of the limit, that the store has told nothing about. */
function rowOf(limit = LIMIT): { table: BucketTable; slot: number } {
  const table = new BucketTable(HYBRID_ROW, 10, new RestedRows());
  const book = { limit, slots: new Map<string, number>(), tally: new Tally() };
  return { table, slot: table.add(book, limit, "k", 0) };
}

/** What the next report of the row says under an epoch. */
function sentFullAt(table: BucketTable, slot: number, epoch: number): number {
  const entry = new Float64Array(ENTRY_FIELDS);
  cutRow(table, slot, { now: SECOND, rttUs: MS, epoch, heldCost: 0, leaving: false }, entry, 0);
  return entry[ENTRY.fullAt] as number;
}

describe("what a row knows of it", () => {
  it("is nothing before the store has told a level", () => {
    const { table, slot } = rowOf();
    expect(sentFullAt(table, slot, EPOCH)).toBe(0);
    expect(knownFullAt(table, slot, EPOCH)).toBe(0);
  });

  it("comes from the reply to a call, holds in its epoch, and is forgotten with its limit", () => {
    const { table, slot } = rowOf();
    noteCallLevel(table, slot, { limit: LIMIT, level: 40, storeNow: NOW, epoch: EPOCH });
    const full = NOW + 30 * SECOND;
    expect(knownFullAt(table, slot, EPOCH)).toBe(full - 1);
    expect(sentFullAt(table, slot, EPOCH)).toBe(full - 1);
    expect(sentFullAt(table, slot, EPOCH + 1)).toBe(0);
    forgetFullAt(table, slot);
    expect(sentFullAt(table, slot, EPOCH)).toBe(0);
  });

  it("is nothing when a call was worded for other numbers than the row has now", () => {
    const { table, slot } = rowOf();
    const limit = limitOf({ tokens: 1, burst: 100 });
    noteCallLevel(table, slot, { limit, level: 40, storeNow: NOW, epoch: EPOCH });
    expect(knownFullAt(table, slot, EPOCH)).toBe(0);
  });

  it.each([
    { otherShape: false, late: false, knows: NOW + 30 * SECOND - 1 },
    { otherShape: false, late: true, knows: NOW + 30 * SECOND - 1 },
    { otherShape: true, late: false, knows: 0 },
  ])("comes from a report's reply: $otherShape, $late", ({ otherShape, late, knows }) => {
    const { table, slot } = rowOf();
    const sent = new Float64Array(ENTRY_FIELDS);
    cutRow(table, slot, { now: 0, rttUs: MS, epoch: 0, heldCost: 0, leaving: false }, sent, 0);
    const reply = new Float64Array(REPLY_FIELDS);
    reply[REPLY.level] = 40;
    reply[REPLY.share] = 1;
    const heard = { now: MS, sentAt: 0, storeNow: NOW, epoch: EPOCH, duplicate: false };
    applyReply(table, slot, { ...heard, late, otherShape }, reply, 0, sent, 0);
    expect(sentFullAt(table, slot, EPOCH)).toBe(knows);
  });
});
