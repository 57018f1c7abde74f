/**
 * A limit that refills a token a day tells what the store has applied: it must be what the pods
 * admitted, token by token, however late the answers were, unless one was lost for good.
 */
import { describe, expect, it } from "vitest";
import { Prng } from "../../sim/prng.ts";
import { limitOf, MS, SECOND, VirtualFleet, type VirtualPod } from "../support/virtual-fleet.ts";

type Mode = "exact" | "leased";

const DAY = 86_400 * SECOND;
const BURST = 20_000;

function fleetOf(mode: Mode): VirtualFleet {
  const limit = limitOf({ tokens: 1, spanUs: DAY, burst: BURST, mode });
  return new VirtualFleet({ limits: [limit], pods: 3 });
}

function applied(fleet: VirtualFleet): number {
  const [, period = 1, , deficit = 0] = fleet.store.keyValue("api", "k") ?? [];
  return Math.round(deficit / period);
}

function admitted(fleet: VirtualFleet): number {
  return fleet.admittedBetween(0, Number.POSITIVE_INFINITY);
}

const first = ({ pods }: VirtualFleet): VirtualPod => pods[0] as VirtualPod;

describe.each<Mode>(["exact", "leased"])("what pods admit of a limit in %s mode", (mode) => {
  it("is what the store has applied, with answers that are late by any time", () => {
    let late = 0;
    for (let seed = 1; seed <= 40; seed += 1) {
      const random = new Prng(seed);
      const fleet = fleetOf(mode);
      const slowest = [5 * MS, 40 * MS, 200 * MS, 900 * MS][seed % 4] as number;
      fleet.callDelayUs = () => (random.chance(0.3) ? random.below(slowest) : MS);
      for (const pod of fleet.pods) fleet.offer(pod, 40, fleet.now + 2 * SECOND);
      fleet.runUntil(fleet.now + 2 * SECOND);
      late += admitted(fleet) < 200 ? 1 : 0;
      fleet.callDelayUs = () => MS;
      fleet.runUntil(fleet.now + 4 * SECOND);
      expect([seed, applied(fleet)]).toEqual([seed, admitted(fleet)]);
    }
    // Some runs were bad enough to deny checks.
    expect(late).toBeGreaterThan(mode === "exact" ? 5 : 0);
  });

  it("is what the store has applied after it stood still for ten seconds", () => {
    const fleet = fleetOf(mode);
    for (const pod of fleet.pods) fleet.offer(pod, 100, fleet.now + 16 * SECOND);
    fleet.runUntil(fleet.now + 3 * SECOND);
    fleet.storeState = "stopped";
    // What is under way to it or back when it stops is answered.
    fleet.runUntil(fleet.now + 10 * SECOND);
    fleet.goOn();
    fleet.runUntil(fleet.now + 8 * SECOND);
    expect(applied(fleet)).toBe(admitted(fleet));
    expect(admitted(fleet)).toBeGreaterThan(1_500);
  });

  it("is what the store has applied after it stood still for half a second, again and again", () => {
    const fleet = fleetOf(mode);
    for (const pod of fleet.pods) fleet.offer(pod, 100, fleet.now + 10 * SECOND);
    for (let i = 0; i < 8; i += 1) {
      fleet.runUntil(fleet.now + 700 * MS);
      fleet.storeState = "stopped";
      fleet.runUntil(fleet.now + 500 * MS);
      fleet.goOn();
    }
    fleet.runUntil(fleet.now + 5 * SECOND);
    expect(applied(fleet)).toBe(admitted(fleet));
  });

  it("is what the store has applied when a pod leaves while its answers are late", () => {
    const fleet = fleetOf(mode);
    fleet.offer(first(fleet), 100, fleet.now + SECOND);
    fleet.callDelayUs = () => 120 * MS;
    fleet.runUntil(fleet.now + SECOND);
    fleet.leave(first(fleet));
    fleet.runUntil(fleet.now + 3 * SECOND);
    expect(first(fleet).isAlive).toBe(false);
    expect(applied(fleet)).toBe(admitted(fleet));
  });
});

describe("a step of the server's clock", () => {
  it.each<Mode>(["exact", "leased"])(
    "denies nobody in %s mode: who is refused asks again",
    (mode) => {
      const limit = limitOf({ tokens: 1_000, burst: 1_000, mode });
      const fleet = new VirtualFleet({ limits: [limit], pods: 2 });
      let denied = 0;
      const ask = (): void => {
        for (const pod of fleet.pods) {
          fleet.check(pod, [{ limit, key: "k", cost: 1 }], ([decision]) => {
            if (decision?.allowed !== true) denied += 1;
          });
        }
      };
      for (let i = 0; i < 400; i += 1) fleet.at(fleet.now + i * 10 * MS, ask);
      fleet.runUntil(fleet.now + SECOND);
      fleet.storeClockOffsetUs += 30 * SECOND;
      fleet.runUntil(fleet.now + SECOND);
      fleet.storeClockOffsetUs -= 60 * SECOND;
      fleet.runUntil(fleet.now + 3 * SECOND);
      expect(denied).toBe(0);
      expect(fleet.excess(limit.rate, limit.burst)).toBeLessThanOrEqual(0);
    },
  );
});
