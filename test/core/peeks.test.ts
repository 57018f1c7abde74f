/** A check of cost 0 answers what a check of cost 1 would, and spends nothing. */
import { describe, expect, it } from "vitest";
import type { Decision } from "../../src/core/decision.ts";
import { limitOf, MS, SECOND, VirtualFleet, type VirtualPod } from "../support/virtual-fleet.ts";

const HOUR = 3600 * SECOND;
const BURST = 40;

describe.each(["hybrid", "leased", "exact"] as const)("a peek at a %s limit", (mode) => {
  const limit = limitOf({ tokens: 1, spanUs: HOUR, burst: BURST, mode });

  function fleetOfTwo(): { fleet: VirtualFleet; first: VirtualPod; second: VirtualPod } {
    const fleet = new VirtualFleet({ limits: [limit], pods: 2 });
    const [first, second] = fleet.pods;
    if (first === undefined || second === undefined) throw new Error("there are two pods");
    return { fleet, first, second };
  }

  /** Spends all that is to be had by one pod. */
  function drain(fleet: VirtualFleet, pod: VirtualPod): void {
    for (let i = 0; i < 4 * BURST; i += 1) {
      fleet.at(fleet.now + i * 20 * MS, () => fleet.check(pod, [{ limit, key: "k", cost: 1 }]));
    }
    fleet.runUntil(fleet.now + 5 * SECOND);
  }

  const peekIn = (fleet: VirtualFleet, pod: VirtualPod): Decision =>
    fleet.ask(pod, { limit, key: "k", cost: 0 });

  it("tells in a pod that was never asked for the key what the others have spent", () => {
    const { fleet, first, second } = fleetOfTwo();
    drain(fleet, first);
    expect(first.admitted).toBeGreaterThanOrEqual(BURST - 4);
    const decision = peekIn(fleet, second);
    expect(decision.remaining).toBeLessThanOrEqual(BURST - first.admitted);
    const spent = first.admitted;
    fleet.check(second, [{ limit, key: "k", cost: 1 }]);
    fleet.runUntil(fleet.now + SECOND);
    expect(decision.allowed).toBe(second.admitted > 0);
    expect(first.admitted + second.admitted).toBeLessThanOrEqual(BURST + 4);
    expect(first.admitted).toBe(spent);
  });

  it("tells the same after the key was idle for half a minute", () => {
    const { fleet, first } = fleetOfTwo();
    drain(fleet, first);
    fleet.runUntil(fleet.now + 30 * SECOND);
    expect(peekIn(fleet, first).remaining).toBeLessThanOrEqual(BURST - first.admitted);
  });

  it("spends nothing, however often it asks", () => {
    const { fleet, first, second } = fleetOfTwo();
    for (let i = 0; i < 100; i += 1) {
      peekIn(fleet, i % 2 === 0 ? first : second);
      fleet.runUntil(fleet.now + 50 * MS);
    }
    expect(peekIn(fleet, first)).toMatchObject({ allowed: true, remaining: BURST });
    drain(fleet, first);
    expect(first.admitted).toBe(BURST);
  });

  it("waits for no store that does not answer", () => {
    const { fleet, first } = fleetOfTwo();
    fleet.storeState = "hanging";
    const askedAt = fleet.now;
    let answeredAt = Number.NaN;
    fleet.check(first, [{ limit, key: "k", cost: 0 }], () => {
      answeredAt = fleet.now;
    });
    fleet.runUntil(askedAt + 50 * MS);
    expect(answeredAt).toBeLessThanOrEqual(askedAt + 10 * MS);
  });

  it("tells a wait that is long enough", () => {
    const { fleet, first } = fleetOfTwo();
    drain(fleet, first);
    const { allowed, retryAfterUs } = peekIn(fleet, first);
    expect(allowed).toBe(false);
    expect(retryAfterUs).toBeGreaterThan(0.5 * HOUR);
  });

  it("tells when debt will be paid, too", () => {
    const { fleet, first } = fleetOfTwo();
    peekIn(fleet, first);
    first.engine.report(fleet.now, { limit, key: "k", cost: BURST + 2 });
    fleet.runUntil(fleet.now + 2 * SECOND);
    expect(peekIn(fleet, first).resetAfterUs).toBeGreaterThan((BURST + 1.9) * HOUR);
  });

  it("does not ask when another limit of the check denies for certain", () => {
    const tight = limitOf({ name: "tight", tokens: 1, spanUs: HOUR, burst: 1, mode: "hybrid" });
    const fleet = new VirtualFleet({ limits: [limit, tight], pods: 1 });
    const [pod] = fleet.pods;
    const checks = [
      { limit, key: "k", cost: 0 },
      { limit: tight, key: "k", cost: 2 },
    ];
    const outcome = pod?.engine.decide(fleet.now, checks);
    expect(outcome).toMatchObject([
      { limit },
      { allowed: false, retryAfterUs: Number.POSITIVE_INFINITY },
    ]);
  });
});
