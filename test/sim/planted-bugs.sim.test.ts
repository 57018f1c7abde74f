/**
 * A simulator that finds nothing proves nothing. Each row plants one bug from outside into the
 * shipped engine or store; the named scenario must find it, by the named law or promise, and must
 * find nothing without the bug.
 */
import { describe, expect, test } from "vitest";
import { aliquotScheme } from "../../sim/aliquot-scheme.ts";
import type { Scheme } from "../../sim/scheme.ts";
import { findings } from "./findings.ts";
import {
  COUNT_LOWERED_AT_ONCE,
  DEFICIT_IN_FRACTIONS,
  DENIED_CHECK_CHARGED,
  FALLBACK_NOT_DIVIDED,
  FALLBACK_OPEN,
  LEAVE_REPORT_LOST,
  LEDGER_DROPPED,
  NEW_CONTENT_UNDER_AN_OLD_NUMBER,
  NO_DEDUPLICATION,
  REFILL_ON_TIER_SWITCH,
  SHARE_WITHOUT_PRIOR,
  STOCK_NEVER_EXPIRES,
  TIME_MOVES_BACK,
} from "./planted-bugs.ts";

const PLANTED: readonly (readonly [Scheme, string, string])[] = [
  [LEDGER_DROPPED, "steady-10x", "I3"],
  [NO_DEDUPLICATION, "duplicates-and-reordering", "I5"],
  [TIME_MOVES_BACK, "store-clock-10s", "clock"],
  [SHARE_WITHOUT_PRIOR, "hot-with-background", "share"],
  [REFILL_ON_TIER_SWITCH, "store-hangs-10s", "I1"],
  [DENIED_CHECK_CHARGED, "steady-2x", "report"],
  [LEAVE_REPORT_LOST, "2-20-6", "report"],
  [COUNT_LOWERED_AT_ONCE, "20-60-10-crash", "count"],
  [NEW_CONTENT_UNDER_AN_OLD_NUMBER, "one-way-loss", "I5"],
  [STOCK_NEVER_EXPIRES, "adversary", "I3"],
  [DEFICIT_IN_FRACTIONS, "steady-0.5x", "I4"],
  [FALLBACK_NOT_DIVIDED, "store-refuses-10s", "I7"],
  [FALLBACK_OPEN, "store-refuses-10s", "I1"],
];

describe.each(PLANTED)("$name", (bug, scenario, law) => {
  test(`is found by ${scenario}: ${law}`, async () => {
    expect(await findings(scenario, bug, 1)).toContain(law);
  });

  test(`${scenario} finds nothing without it`, async () => {
    expect(await findings(scenario, aliquotScheme() as Scheme, 1)).toEqual([]);
  });
});
