/**
 * A failover to a replica that lags: the store has forgotten what pods reported last. What the
 * bucket has not refilled since is reported again, what it has refilled is not. Found by
 * `npm run sim -- --scenario failover-and-flap`, which lost half a second's worth of the rate.
 */
import { expect, test } from "vitest";
import { limitOf, MS, SECOND, VirtualFleet } from "../support/virtual-fleet.ts";

const LIMIT = limitOf({ tokens: 1000, burst: 1000 });
const END = 10 * SECOND;

/** Ten pods under twice the rate; the replica holds what the store held at 4.5 s. */
function overloaded(): { fleet: VirtualFleet; failOver: () => void } {
  const fleet = new VirtualFleet({ limits: [LIMIT], pods: 10 });
  for (const pod of fleet.pods) fleet.offer(pod, 200, END);
  fleet.runUntil(4.5 * SECOND);
  const replica = fleet.store.snapshot();
  fleet.runUntil(5 * SECOND);
  return { fleet, failOver: () => fleet.store.restore(replica) };
}

test("what a replica half a second old lacks is charged", () => {
  const { fleet, failOver } = overloaded();
  failOver();
  fleet.runUntil(END);
  expect(fleet.excess(1000, 1000)).toBeLessThan(100);
  expect(fleet.admittedBetween(5 * SECOND, END)).toBeGreaterThan(0.97 * 5000);
});

test("what was refilled while the primary was away is not charged again", () => {
  const { fleet, failOver } = overloaded();
  fleet.storeState = "hanging";
  fleet.runUntil(7 * SECOND);
  failOver();
  fleet.storeState = "up";
  fleet.runUntil(END);
  expect(fleet.excess(1000, 1000)).toBeLessThan(100);
  // Without the two seconds in which pods decide alone at 0.9 of the rate there is nothing missing.
  expect(fleet.admittedBetween(7 * SECOND + 300 * MS, END)).toBeGreaterThan(0.97 * 2700);
  expect(fleet.admittedBetween(5 * SECOND, END)).toBeGreaterThan(0.95 * 5000);
});
