/** Leased and exact limits, told in virtual time around one embedded store. */
import { describe, expect, it } from "vitest";
import type { Decision } from "../../src/core/decision.ts";
import type { Limit } from "../../src/core/limit.ts";
import { limitOf, MS, SECOND, VirtualFleet } from "../support/virtual-fleet.ts";

const pod = (fleet: VirtualFleet, index: number): VirtualFleet["pods"][0] =>
  fleet.pods[index] as VirtualFleet["pods"][0];

/** Runs an even load and tells what came of it. */
function run(limit: Limit, pods: number, perPod: number, seconds: number) {
  const fleet = new VirtualFleet({ limits: [limit], pods });
  const start = fleet.now;
  for (const each of fleet.pods) fleet.offer(each, perPod, start + seconds * SECOND);
  fleet.runUntil(start + seconds * SECOND);
  const admitted = fleet.admittedBetween(0, Number.POSITIVE_INFINITY);
  const ideal = Math.min(pods * perPod * seconds, limit.rate * seconds + limit.burst);
  return {
    fleet,
    excess: fleet.excess(limit.rate, limit.burst),
    utilisation: admitted / ideal,
    callsPerAdmit: fleet.calls / admitted,
  };
}

describe("a leased limit", () => {
  it.each([
    { tokens: 1000, burst: 1000, pods: 20, perPod: 25, most: 0.45 },
    { tokens: 1000, burst: 1000, pods: 20, perPod: 100, most: 0.5 },
    { tokens: 1000, burst: 1000, pods: 20, perPod: 500, most: 0.5 },
    { tokens: 200, burst: 200, pods: 20, perPod: 20, most: 2.2 },
    { tokens: 1000, burst: 100, pods: 20, perPod: 100, most: 1.2 },
    { tokens: 1000, burst: 1000, pods: 1, perPod: 2000, most: 0.1 },
  ])("of $tokens/s, burst $burst, $pods pods, $perPod/s each: never exceeded, and used", (row) => {
    const limit = limitOf({ tokens: row.tokens, burst: row.burst, mode: "leased" });
    const result = run(limit, row.pods, row.perPod, 20);
    expect(result.excess).toBeLessThan(1e-6);
    expect(result.utilisation).toBeGreaterThanOrEqual(0.98);
    expect(result.callsPerAdmit).toBeLessThanOrEqual(row.most);
  });

  it("serves weighted costs", () => {
    const limit = limitOf({ tokens: 1000, burst: 1000, mode: "leased" });
    const fleet = new VirtualFleet({ limits: [limit], pods: 5 });
    let asked = 0;
    for (let i = 0; i < 300; i += 1) {
      const cost = [1, 5, 20, 50][i % 4] as number;
      asked += cost;
      fleet.at(fleet.now + i * 40 * MS, () =>
        fleet.check(pod(fleet, i % 5), [{ limit, key: "k", cost }]),
      );
    }
    fleet.runUntil(fleet.now + 13 * SECOND);
    const admitted = fleet.admittedBetween(0, fleet.now);
    expect(admitted).toBeGreaterThanOrEqual(0.95 * asked);
    expect(fleet.excess(1000, 1000)).toBeLessThan(1e-6);
  });

  it("is not exceeded when pods vanish with their leases, and recovers", () => {
    const limit = limitOf({ tokens: 1000, burst: 1000, mode: "leased" });
    const fleet = new VirtualFleet({ limits: [limit], pods: 20 });
    for (const each of fleet.pods) fleet.offer(each, 100, 30 * SECOND);
    for (let i = 0; i < 5; i += 1) {
      fleet.at((5 + i) * SECOND, () => {
        pod(fleet, i).isAlive = false;
      });
    }
    fleet.runUntil(30 * SECOND);
    expect(fleet.excess(1000, 1000)).toBeLessThan(1e-6);
    expect(fleet.admittedBetween(12 * SECOND, 30 * SECOND)).toBeGreaterThanOrEqual(0.97 * 18_000);
  });

  it("gives its leases back when a pod leaves", () => {
    const limit = limitOf({ tokens: 1, spanUs: 3600 * SECOND, burst: 1000, mode: "leased" });
    const fleet = new VirtualFleet({ limits: [limit], pods: 2 });
    // Left before a lease ends, so that nothing lapses with one.
    fleet.offer(pod(fleet, 0), 200, fleet.now + 0.5 * SECOND);
    fleet.runUntil(fleet.now + 0.5 * SECOND);
    const admitted = fleet.admittedBetween(0, fleet.now);
    fleet.leave(pod(fleet, 0));
    fleet.runUntil(fleet.now + SECOND);
    const stored = fleet.store.keyValue("api", "k") as Float64Array;
    expect(Math.ceil((stored[3] as number) / (stored[1] as number))).toBe(admitted);
  });

  it("denies rather than exceed while the store is silent, then falls back, then settles", () => {
    const limit = limitOf({ tokens: 100, burst: 100, mode: "leased" }, { margin: 0.5 });
    const fleet = new VirtualFleet({ limits: [limit], pods: 4 });
    for (const each of fleet.pods) fleet.offer(each, 200, 60 * SECOND);
    fleet.runUntil(10 * SECOND);
    fleet.storeState = "hanging";
    fleet.runUntil(30 * SECOND);
    const isolated = fleet.admittedBetween(15 * SECOND, 30 * SECOND) / 15;
    expect(isolated).toBeGreaterThanOrEqual(48);
    expect(isolated).toBeLessThanOrEqual(51);
    fleet.storeState = "up";
    fleet.runUntil(60 * SECOND);
    const after = fleet.admittedBetween(35 * SECOND, 60 * SECOND) / 25;
    expect(after).toBeGreaterThanOrEqual(95);
    expect(fleet.excess(100, 100)).toBeLessThanOrEqual(5);
  });
});

describe("an exact limit", () => {
  it.each([
    { tokens: 3, burst: 3, pods: 10, perPod: 2 },
    { tokens: 10, burst: 10, pods: 20, perPod: 5 },
    { tokens: 100, burst: 5, pods: 20, perPod: 10 },
    { tokens: 200, burst: 200, pods: 20, perPod: 100 },
    { tokens: 1000, burst: 1000, pods: 20, perPod: 100 },
  ])("of $tokens/s, burst $burst over $pods pods is what one bucket admits", (row) => {
    const limit = limitOf({ tokens: row.tokens, burst: row.burst, mode: "exact" });
    const result = run(limit, row.pods, row.perPod, 20);
    expect(result.excess).toBeLessThanOrEqual(Math.max(1, 0.05 * row.tokens));
    const ideal = row.tokens * 20 + row.burst;
    expect(result.utilisation).toBeGreaterThanOrEqual(0.99 - 1 / ideal);
  });

  it("asks the store about as often as there are tokens, however many are denied", () => {
    const limit = limitOf({ tokens: 1000, burst: 1000, mode: "exact" });
    // In lock-step; with random arrivals, as in the simulator, it is 1.84.
    expect(run(limit, 20, 100, 20).callsPerAdmit).toBeLessThanOrEqual(1.95);
  });

  it("admits one of thirty checks within three seconds, in the whole fleet", () => {
    const limit = limitOf({ tokens: 1, spanUs: 30 * SECOND, burst: 1, mode: "exact" });
    const fleet = new VirtualFleet({ limits: [limit], pods: 2 });
    for (let i = 0; i < 30; i += 1) {
      fleet.at(fleet.now + i * 100 * MS, () =>
        fleet.check(pod(fleet, i % 2), [{ limit, key: "k", cost: 1 }]),
      );
    }
    fleet.runUntil(fleet.now + 4 * SECOND);
    expect(fleet.admissions).toHaveLength(1);
  });

  it("tells a wait after which a lone caller is admitted", () => {
    const limit = limitOf({ tokens: 7, spanUs: 2 * SECOND, burst: 2, mode: "exact" });
    const fleet = new VirtualFleet({ limits: [limit], pods: 2 });
    let admitted = 0;
    let refusedAfterWaiting = 0;
    const ask = (hasWaited: boolean): void =>
      fleet.check(pod(fleet, 0), [{ limit, key: "k", cost: 1 }], ([decision]) => {
        if (decision?.allowed) admitted += 1;
        else if (hasWaited) refusedAfterWaiting += 1;
        const wait = decision?.retryAfterUs ?? 0;
        if (admitted < 60) fleet.at(fleet.now + wait, () => ask(wait > 0));
      });
    ask(false);
    fleet.runUntil(fleet.now + 40 * SECOND);
    expect(admitted).toBe(60);
    expect(refusedAfterWaiting).toBeLessThanOrEqual(1);
  });

  it("answers within the decision timeout when the store is silent, by the limit's policy", () => {
    const limits = (["local", "open", "closed"] as const).map((policy) =>
      limitOf({ name: policy, tokens: 100, burst: 100, mode: "exact" }, { policy }),
    );
    const fleet = new VirtualFleet({ limits, pods: 2 });
    fleet.storeState = "hanging";
    const start = fleet.now;
    const answers = new Map<string, { at: number; decision: Decision }>();
    for (const limit of limits) {
      fleet.check(pod(fleet, 0), [{ limit, key: "k", cost: 1 }], ([decision]) =>
        answers.set(limit.name, { at: fleet.now, decision: decision as Decision }),
      );
    }
    fleet.runUntil(start + 20 * MS);
    for (const { at } of answers.values()) expect(at).toBeLessThanOrEqual(start + 10 * MS);
    expect(answers.get("local")?.decision).toMatchObject({
      allowed: false,
      reason: "store_timeout",
    });
    expect(answers.get("closed")?.decision).toMatchObject({
      allowed: false,
      reason: "store_unavailable",
    });
    expect(answers.get("open")?.decision).toMatchObject({ allowed: true, source: "fallback" });
  });

  describe("when the store begins to hang", () => {
    const limit = limitOf({ tokens: 100, burst: 100, mode: "exact" });

    /** Asks for another key each half of a millisecond. @returns How long each check took, us. */
    function askEvenly(fleet: VirtualFleet, checks: number): number[] {
      const waits: number[] = [];
      for (let i = 0; i < checks; i += 1) {
        const askedAt = fleet.now + i * 0.5 * MS;
        const check = { limit, key: `k${i % 1000}`, cost: 1 };
        fleet.at(askedAt, () =>
          fleet.check(pod(fleet, 0), [check], () => waits.push(fleet.now - askedAt)),
        );
      }
      fleet.runUntil(fleet.now + checks * 0.5 * MS + 20 * MS);
      return waits;
    }

    it("makes the checks of one decision timeout wait for so long, and no others", () => {
      const fleet = new VirtualFleet({ limits: [limit], pods: 1, delayUs: 0.25 * MS });
      expect(Math.max(...askEvenly(fleet, 2000))).toBeLessThanOrEqual(1 * MS);
      fleet.storeState = "hanging";
      const waits = askEvenly(fleet, 2000);
      expect(waits).toHaveLength(2000);
      expect(Math.max(...waits)).toBeLessThanOrEqual(10 * MS);
      expect(waits.filter((wait) => wait > 5 * MS).length).toBeLessThanOrEqual(20);
    });

    it("asks for the next check when a single call got lost", () => {
      const fleet = new VirtualFleet({ limits: [limit], pods: 1, delayUs: 0.25 * MS });
      askEvenly(fleet, 100);
      fleet.storeState = "hanging";
      let lost: boolean | undefined;
      fleet.check(pod(fleet, 0), [{ limit, key: "a", cost: 1 }], ([decision]) => {
        lost = decision?.allowed;
      });
      fleet.runUntil(fleet.now + 15 * MS);
      fleet.storeState = "up";
      let next: boolean | undefined;
      fleet.check(pod(fleet, 0), [{ limit, key: "b", cost: 1 }], ([decision]) => {
        next = decision?.allowed;
      });
      fleet.runUntil(fleet.now + 5 * MS);
      expect([lost, next]).toEqual([false, true]);
    });
  });
});

describe("a store that refuses", () => {
  it.each(["hybrid", "leased", "exact"] as const)("is not stormed by a %s limit", (mode) => {
    const limit = limitOf({ tokens: 100, burst: 100, mode });
    const fleet = new VirtualFleet({ limits: [limit], pods: 1 });
    fleet.storeState = "refusing";
    fleet.offer(pod(fleet, 0), 500, fleet.now + 5 * SECOND);
    fleet.runUntil(fleet.now + 5 * SECOND);
    // A dozen attempts until the pod is isolated, then a few a second.
    expect(fleet.calls).toBeLessThanOrEqual(120);
    const { engine } = pod(fleet, 0);
    expect(engine.wakeAt).toBeGreaterThan(fleet.now);
  });
});

describe("a check over limits of different modes", () => {
  it("spends nothing of any when one denies", () => {
    const hybrid = limitOf({ name: "h", tokens: 1, spanUs: 3600 * SECOND, burst: 500 });
    const leased = limitOf({
      name: "l",
      tokens: 1,
      spanUs: 3600 * SECOND,
      burst: 400,
      mode: "leased",
    });
    const exact = limitOf({
      name: "e",
      tokens: 1,
      spanUs: 3600 * SECOND,
      burst: 30,
      mode: "exact",
    });
    const fleet = new VirtualFleet({ limits: [hybrid, leased, exact], pods: 3 });
    const limits = [hybrid, leased, exact];
    let allowed = 0;
    for (let i = 0; i < 300; i += 1) {
      const checks = limits.map((limit) => ({ limit, key: "k", cost: 1 }));
      fleet.at(fleet.now + i * 20 * MS, () =>
        fleet.check(pod(fleet, i % 3), checks, (decisions) => {
          if (decisions.every((decision) => decision.allowed)) allowed += 1;
        }),
      );
    }
    fleet.runUntil(fleet.now + 8 * SECOND);
    expect(allowed).toBe(30);
    for (const each of [...fleet.pods]) fleet.leave(each);
    fleet.runUntil(fleet.now + 2 * SECOND);
    for (const { name } of limits) {
      const stored = fleet.store.keyValue(name, "k") as Float64Array;
      expect([name, Math.ceil((stored[3] as number) / (stored[1] as number))]).toEqual([name, 30]);
    }
  });
});

describe("a change of mode while running", () => {
  it("loses nothing and gives nothing", () => {
    const spec = { tokens: 500, burst: 500 } as const;
    const fleet = new VirtualFleet({ limits: [limitOf({ ...spec, mode: "hybrid" })], pods: 5 });
    for (const each of fleet.pods) fleet.offer(each, 200, 40 * SECOND);
    const modes = ["leased", "exact", "hybrid", "exact", "leased", "hybrid"] as const;
    for (const [i, mode] of modes.entries()) {
      fleet.at((5 + 5 * i) * SECOND, () => {
        for (const each of fleet.pods) {
          each.engine.configChanged(fleet.now, [limitOf({ ...spec, mode })]);
        }
      });
    }
    fleet.runUntil(40 * SECOND);
    expect(fleet.excess(500, 500)).toBeLessThanOrEqual(100);
    expect(fleet.admittedBetween(0, 40 * SECOND)).toBeGreaterThanOrEqual(0.97 * (500 * 40 + 500));
  });
});
