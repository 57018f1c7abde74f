/** How many pods the engine counts on, told by heartbeats and by a listing beside the store. */
import { beforeEach, describe, expect, it } from "vitest";
import { FleetSize } from "../../src/core/fleet-size.ts";
import { limitOf, MS, SECOND, VirtualFleet } from "../support/virtual-fleet.ts";

const ASSUMED = 20;
const MINUTE = 60 * SECOND;

let fleet: FleetSize;
let now: number;

beforeEach(() => {
  fleet = new FleetSize();
  now = 5 * MINUTE;
});

/** Heartbeats once a second that all find the same. */
function beat(times: number, pods: number, silent = 0): void {
  for (let i = 0; i < times; i += 1) {
    now += SECOND;
    fleet.counted(now, pods, silent);
  }
}

function storeAway(seconds: number): void {
  for (let i = 0; i < seconds; i += 1) {
    now += SECOND;
    fleet.failed(now);
  }
}

const sizes = (): number[] => [fleet.pods(ASSUMED), fleet.podsWhenIsolated(ASSUMED)];

describe("the size of the fleet with a listing beside the heartbeats", () => {
  it("is the larger of the two counts", () => {
    beat(1, 3);
    expect(sizes()).toEqual([3, 3]);
    fleet.listed(now, 5);
    expect(sizes()).toEqual([5, 5]);
    beat(1, 8);
    expect(sizes()).toEqual([8, 8]);
  });

  it("grows at once, without waiting for a heartbeat", () => {
    beat(2, 3);
    fleet.listed(now, 3);
    fleet.listed(now + 1, 30);
    expect(sizes()).toEqual([30, 30]);
  });

  it("counts every member of a listed pod, and shows the listing in pods", () => {
    fleet = new FleetSize(4);
    expect(fleet.pods(ASSUMED)).toBe(4 * ASSUMED);
    beat(1, 9);
    expect(sizes()).toEqual([9, 9]);
    fleet.listed(now, 3);
    expect(sizes()).toEqual([12, 12]);
    expect(fleet.listing).toEqual({ pods: 3, isCurrent: true });
    storeAway(10);
    expect(fleet.podsWhenIsolated(ASSUMED)).toBe(12);
  });

  it("shows what the listing told last, and whether it still holds", () => {
    beat(1, 3);
    expect(fleet.listing).toBeUndefined();
    fleet.listed(now, undefined);
    expect(fleet.listing).toBeUndefined();
    fleet.listed(now, 5);
    expect(fleet.listing).toEqual({ pods: 5, isCurrent: true });
    fleet.listed(now, undefined);
    expect(fleet.listing).toEqual({ pods: 5, isCurrent: false });
  });

  it("falls when fewer have been listed for 3.1 s, and for the fallback much later", () => {
    beat(1, 3);
    fleet.listed(now, 30);
    beat(10, 3);
    fleet.listed(now, 5);
    beat(3, 3);
    expect(sizes()).toEqual([30, 30]);
    beat(1, 3);
    expect(sizes()).toEqual([5, 30]);
    beat(11 * 60, 3);
    expect(sizes()).toEqual([5, 5]);
  });

  it("grows and falls by the listing while the store is away", () => {
    beat(3, 3);
    fleet.listed(now, 3);
    storeAway(5);
    fleet.listed(now, 30);
    expect(sizes()).toEqual([30, 30]);
    storeAway(5);
    fleet.listed(now, 5);
    storeAway(3);
    expect(fleet.pods(ASSUMED)).toBe(30);
    storeAway(1);
    expect(sizes()).toEqual([5, 30]);
  });

  it("does not fall below what the heartbeats last said while the store is away", () => {
    beat(3, 8);
    fleet.listed(now, 8);
    storeAway(2);
    fleet.listed(now, 2);
    storeAway(20 * 60);
    fleet.listed(now, 2);
    expect(sizes()).toEqual([8, 8]);
  });

  it("is at least what is assumed before the first heartbeat, or what is listed", () => {
    fleet.listed(now, 7);
    expect(sizes()).toEqual([ASSUMED, ASSUMED]);
    fleet.listed(now, 30);
    expect(sizes()).toEqual([30, 30]);
    expect(fleet.joined).toBe(false);
  });

  it("is never below 1, however few are listed", () => {
    fleet.listed(now, 0);
    beat(5, 1);
    fleet.listed(now, -3);
    expect(sizes()).toEqual([1, 1]);
  });

  it("keeps the last listing while its source is out of reach", () => {
    beat(1, 3);
    fleet.listed(now, 12);
    beat(60, 3);
    fleet.listed(now, undefined);
    beat(60, 3);
    expect(sizes()).toEqual([12, 12]);
  });

  it("survives a listing that changes at every turn", () => {
    beat(1, 1);
    for (let pods = 5_000; pods > 0; pods -= 1) {
      now += 100;
      fleet.listed(now, pods);
    }
    expect(fleet.pods(ASSUMED)).toBe(5_000);
    beat(5, 1);
    expect(fleet.pods(ASSUMED)).toBe(1);
  });
});

describe("what is held back for pods that are cut off", () => {
  const margin = 0.9;
  const held = (): number => fleet.hold(now, margin);

  it("is the part of those that are listed and not heard, for as long as they are listed", () => {
    fleet.listed(now, 10);
    beat(5, 10);
    expect(held()).toBe(0);
    beat(3, 10, 3);
    expect(held()).toBeCloseTo((margin * 3) / 10);
    // The store drops them after five seconds; the listing does not.
    for (let second = 0; second < 300; second += 1) {
      beat(1, 7);
      expect(held()).toBeCloseTo((margin * 3) / 10);
    }
    fleet.listed(now, 7);
    beat(1, 7);
    expect(held()).toBe(0);
  });

  it("is nothing for pods that died, although the store has not dropped them yet", () => {
    fleet.listed(now, 10);
    beat(5, 10);
    fleet.listed(now, 4);
    beat(1, 10, 6);
    expect(held()).toBe(0);
  });

  it("is nothing for pods that left gracefully and are listed for a moment longer", () => {
    fleet.listed(now, 30);
    beat(5, 30);
    beat(2, 5);
    expect(held()).toBe(0);
    fleet.listed(now, 5);
    beat(5, 5);
    expect(held()).toBe(0);
  });

  it("is nothing for pods that are listed so shortly that they may not have been heard yet", () => {
    fleet.listed(now, 3);
    beat(5, 3);
    fleet.listed(now, 30);
    now += 900 * MS;
    fleet.counted(now, 3, 0);
    expect(held()).toBe(0);
    beat(3, 3);
    expect(held()).toBeGreaterThan(0.7);
    beat(1, 30);
    expect(held()).toBe(0);
  });

  it("follows the heartbeats alone once the source is out of reach", () => {
    fleet.listed(now, 10);
    beat(5, 7);
    expect(held()).toBeGreaterThan(0);
    fleet.listed(now, undefined);
    beat(1, 7);
    expect(held()).toBe(0);
    beat(1, 7, 2);
    expect(held()).toBeCloseTo((margin * 2) / 10);
  });
});

describe("a fleet that grows while the store is away", () => {
  /**
   * What 30 isolated pods admit per second of a limit of 1000/s and 10 of burst, 3 old ones first.
   */
  const admittedPerSecond = (isListed: boolean): number => {
    const limit = limitOf({ tokens: 1_000, burst: 10 }, { maxPods: 5 });
    const fleet = new VirtualFleet({ limits: [limit], pods: 3 });
    fleet.runUntil(5 * SECOND);
    fleet.storeState = "refusing";
    fleet.runUntil(10 * SECOND);
    for (let i = 3; i < 30; i += 1) fleet.join();
    if (isListed) for (const { engine } of fleet.pods) engine.membershipListed(fleet.now, 30);
    for (const pod of fleet.pods) fleet.offer(pod, 400, 20 * SECOND);
    fleet.runUntil(20 * SECOND);
    return fleet.admittedBetween(13 * SECOND, 20 * SECOND) / 7;
  };

  it("keeps the margin when the pods are listed, from the first check of the new pods on", () => {
    const admitted = admittedPerSecond(true);
    expect(admitted).toBeLessThanOrEqual(0.9 * 1_000);
    expect(admitted).toBeGreaterThan(0.85 * 1_000);
  });

  it("has no way of knowing without a listing, which shows what the listing is for", () => {
    expect(admittedPerSecond(false)).toBeGreaterThan(4_000);
  });
});
