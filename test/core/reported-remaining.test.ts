/** What is left of a limit that the store decides, after a report that no check went before. */
import { expect, it } from "vitest";
import { limitOf, SECOND, VirtualFleet } from "../support/virtual-fleet.ts";

it.each(["exact", "leased"] as const)("a report to an %s limit shows in what is left", (mode) => {
  const limit = limitOf({ tokens: 1, spanUs: 3600 * SECOND, burst: 30, mode });
  const fleet = new VirtualFleet({ limits: [limit], pods: 2 });
  const [first, second] = fleet.pods;
  if (first === undefined || second === undefined) throw new Error("there are two pods");
  const peek = (): number => fleet.ask(first, { limit, key: "k", cost: 0 }).remaining;
  expect(first.engine.report(fleet.now, { limit, key: "k", cost: 20 }).remaining).toBe(10);
  expect(peek()).toBe(10);
  fleet.runUntil(fleet.now + SECOND);
  expect(peek()).toBe(10);
  fleet.check(second, [{ limit, key: "k", cost: 4 }]);
  fleet.check(first, [{ limit, key: "k", cost: 1 }]);
  fleet.runUntil(fleet.now + SECOND);
  expect(peek()).toBe(5);
  expect(first.admitted + second.admitted).toBe(5);
});
