/** Pods that come while others hold stock of a slow limit: nobody is denied what is there. */
import { describe, expect, it } from "vitest";
import { limitOf, MS, SECOND, VirtualFleet } from "../support/virtual-fleet.ts";

describe.each([100, 500])("a limit of 1000 an hour, interval %d ms", (intervalMs) => {
  const limit = limitOf({
    tokens: 1000,
    spanUs: 3600 * SECOND,
    burst: 1000,
    mode: "hybrid",
    intervalUs: intervalMs * MS,
  });

  it("denies nothing to a second pod that comes while 950 tokens are left", () => {
    const fleet = new VirtualFleet({ limits: [limit], pods: 1 });
    for (const pod of fleet.pods) fleet.offer(pod, 5, 30 * SECOND);
    fleet.runUntil(10 * SECOND);
    const second = fleet.join();
    fleet.runUntil(fleet.now + 50 * MS);
    fleet.offer(second, 15, fleet.now + 3 * SECOND);
    fleet.runUntil(fleet.now + 4 * SECOND);
    expect(second.admitted).toBe(45);
    expect(second.denied).toBe(0);
  });

  it("denies nothing in the first second of three pods", () => {
    const fleet = new VirtualFleet({ limits: [limit], pods: 3 });
    for (const pod of fleet.pods) fleet.offer(pod, 13, fleet.now + SECOND);
    fleet.runUntil(fleet.now + 2 * SECOND);
    expect(fleet.pods.map(({ denied }) => denied)).toEqual([0, 0, 0]);
  });

  it("still gives a lone pod the whole burst", () => {
    const fleet = new VirtualFleet({ limits: [limit], pods: 1 });
    for (const pod of fleet.pods) fleet.offer(pod, 100, fleet.now + 12 * SECOND);
    fleet.runUntil(fleet.now + 13 * SECOND);
    expect(fleet.admittedBetween(0, fleet.now)).toBeGreaterThanOrEqual(1000);
  });
});

describe.each([3, 10, 40])("a slow limit with a burst of %d", (burst) => {
  it.each([0, 5, 60])("is all a lone pod's, asked for every %d ms", (everyMs) => {
    const limit = limitOf({ tokens: 1, spanUs: 3600 * SECOND, burst, mode: "hybrid" });
    const fleet = new VirtualFleet({ limits: [limit], pods: 1 });
    const [pod] = fleet.pods;
    if (pod === undefined) throw new Error("there is a pod");
    const verdicts: boolean[] = [];
    for (let i = 0; i < burst + 1; i += 1) {
      verdicts.push(fleet.ask(pod, { limit, key: "k", cost: 1 }).allowed);
      fleet.runUntil(fleet.now + everyMs * MS);
    }
    expect(verdicts).toEqual([...Array.from({ length: burst }, () => true), false]);
  });
});
