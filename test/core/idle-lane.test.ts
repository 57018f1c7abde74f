/**
 * The store forgets a pod's sequence number after ten minutes. A lane that was idle for longer must
 * not take that for a failover.
 */
import { expect, test } from "vitest";
import { limitOf, MS, SECOND, VirtualFleet } from "../support/virtual-fleet.ts";

const DAY = 86_400 * SECOND;
const LIMIT = limitOf({ tokens: 100, burst: 100, spanUs: DAY });

test("what was reported before a long pause is not charged again after it", () => {
  const fleet = new VirtualFleet({ limits: [LIMIT], pods: 2 });
  const [pod] = fleet.pods;
  if (pod === undefined) throw new Error("a fleet of two pods has a first one");
  const remaining = (): number => {
    let left = Number.NaN;
    fleet.check(pod, [{ limit: LIMIT, key: "k", cost: 1 }], ([decision]) => {
      left = decision?.remaining ?? left;
    });
    fleet.runUntil(fleet.now + SECOND);
    return left;
  };
  for (let i = 0; i < 20; i += 1) remaining();
  const before = remaining();
  expect(before).toBeGreaterThan(75);
  fleet.runUntil(fleet.now + 700 * SECOND);
  remaining();
  fleet.runUntil(fleet.now + 20 * MS);
  expect(before - remaining()).toBeLessThanOrEqual(2);
  expect(pod.admitted).toBe(23);
});
