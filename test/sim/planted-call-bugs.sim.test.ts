/**
 * Bugs of leased and exact limits: the named scenario must find each, by the named law or promise,
 * and must find nothing without the bug.
 */
import { describe, expect, test } from "vitest";
import { aliquotScheme } from "../../sim/aliquot-scheme.ts";
import type { Scheme } from "../../sim/scheme.ts";
import { findings } from "./findings.ts";
import {
  CALL_SENT_AGAIN,
  GIVE_BACK_FORGOTTEN,
  LEASE_USED_PAST_ITS_DEADLINE,
  LEASES_FORGOTTEN_BY_A_TAKE,
  NO_TICKETS,
  OLD_GIVE_BACK_CREDITED,
  REFILL_NOT_CLIPPED,
} from "./planted-call-bugs.ts";

const PLANTED: readonly (readonly [Scheme, string, string])[] = [
  [LEASE_USED_PAST_ITS_DEADLINE, "leased-stall-at-half-load", "I2"],
  [CALL_SENT_AGAIN, "exact-loss-10", "I5"],
  [OLD_GIVE_BACK_CREDITED, "two-exact-limits", "order"],
  [GIVE_BACK_FORGOTTEN, "two-exact-limits", "at least 0.97 of what ideal buckets admit"],
  [REFILL_NOT_CLIPPED, "leased-steady-0.5x", "I2"],
  [LEASES_FORGOTTEN_BY_A_TAKE, "roll-leased-to-exact-half-load", "I2"],
  [NO_TICKETS, "exact-steady-10x", "I6"],
];

describe.each(PLANTED)("$name", (bug, scenario, law) => {
  test(`is found by ${scenario}: ${law}`, async () => {
    expect(await findings(scenario, bug, 1)).toContain(law);
  });

  test(`${scenario} finds nothing without it`, async () => {
    expect(await findings(scenario, aliquotScheme() as Scheme, 1)).toEqual([]);
  });
});
