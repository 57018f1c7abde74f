/** Costs and limits that no single pod covers, told in virtual time around one embedded store. */
import { describe, expect, it } from "vitest";
import type { Decision } from "../../src/core/decision.ts";
import { limitOf, MS, SECOND, VirtualFleet } from "../support/virtual-fleet.ts";

describe("small limits on many pods", () => {
  it.each([
    { tokens: 1, burst: 60, pods: 20, requests: 20, gapMs: 20 },
    { tokens: 10, burst: 100, pods: 20, requests: 30, gapMs: 200 },
    { tokens: 5, burst: 20, pods: 5, requests: 10, gapMs: 20 },
  ])("serve a burst of $requests within $burst over $pods pods", (row) => {
    const limit = limitOf({ tokens: row.tokens, burst: row.burst });
    const fleet = new VirtualFleet({ limits: [limit], pods: row.pods });
    let admitted = 0;
    let asked = 0;
    for (let round = 0; round < 20; round += 1) {
      for (let i = 0; i < row.requests; i += 1) {
        const pod = fleet.pods[(i * 7 + round * 3) % row.pods] as VirtualFleet["pods"][0];
        fleet.at(fleet.now + i * row.gapMs * MS, () => {
          asked += 1;
          fleet.check(pod, [{ limit, key: `u${round}`, cost: 1 }], (decisions) => {
            if (decisions[0]?.allowed) admitted += 1;
          });
        });
      }
      fleet.runUntil(fleet.now + 10 * SECOND);
    }
    expect(admitted).toBeGreaterThanOrEqual(0.98 * asked);
  });

  it("admit a cost of a quarter of the burst that no pod holds by itself", () => {
    const limit = limitOf({ tokens: 1000, burst: 1000 });
    const fleet = new VirtualFleet({ limits: [limit], pods: 20 });
    let admitted = 0;
    for (let i = 0; i < 40; i += 1) {
      const pod = fleet.pods[i % 20] as VirtualFleet["pods"][0];
      fleet.at(fleet.now + i * 500 * MS, () =>
        fleet.check(pod, [{ limit, key: "k", cost: 250 }], ([decision]) => {
          if (decision?.allowed) admitted += 1;
        }),
      );
    }
    fleet.runUntil(fleet.now + 25 * SECOND);
    expect(admitted).toBeGreaterThanOrEqual(38);
  });
});

describe("a check that is held", () => {
  const limit = limitOf({ tokens: 100, burst: 100 });

  it("is answered by the store's reply", () => {
    const fleet = new VirtualFleet({ limits: [limit], pods: 2 });
    const pod = fleet.pods[0] as VirtualFleet["pods"][0];
    const answers: Decision[] = [];
    fleet.check(pod, [{ limit, key: "new", cost: 20 }], (got) => answers.push(...got));
    expect(answers).toHaveLength(0);
    fleet.runUntil(fleet.now + 5 * MS);
    expect(answers).toMatchObject([{ allowed: true, source: "store" }]);
  });

  it("is decided by the pod when the store takes longer than the decision timeout", () => {
    const fleet = new VirtualFleet({ limits: [limit], pods: 2 });
    fleet.storeState = "hanging";
    const pod = fleet.pods[0] as VirtualFleet["pods"][0];
    const answers: { at: number; decision: Decision }[] = [];
    const start = fleet.now;
    fleet.check(pod, [{ limit, key: "new", cost: 20 }], ([decision]) =>
      answers.push({ at: fleet.now, decision: decision as Decision }),
    );
    fleet.runUntil(start + 50 * MS);
    expect(answers).toMatchObject([{ at: start + 10 * MS, decision: { allowed: false } }]);
  });

  it("over several limits takes from all or from none", () => {
    const tight = limitOf({ name: "tight", tokens: 1, spanUs: 60 * SECOND, burst: 30 });
    const fleet = new VirtualFleet({ limits: [limit, tight], pods: 3 });
    for (let i = 0; i < 600; i += 1) {
      const pod = fleet.pods[i % 3] as VirtualFleet["pods"][0];
      const checks = [
        { limit, key: "k", cost: 1 },
        { limit: tight, key: "k", cost: 1 },
      ];
      fleet.at(fleet.now + i * 5 * MS, () => fleet.check(pod, checks));
    }
    fleet.runUntil(fleet.now + 6 * SECOND);
    const pairs = fleet.admissions.length;
    expect(pairs).toBeGreaterThanOrEqual(28);
    expect(pairs).toBeLessThanOrEqual(33);
    const spent = fleet.pods.reduce(
      (sum, pod) =>
        sum +
        (pod.engine.figures(fleet.now).limits.find(({ name }) => name === "api")?.tally
          .tokens[0] as number),
      0,
    );
    expect(spent).toBe(pairs);
  });
});
