/** Calls that come too late to decide anything, and what comes back of leases that have ended. */
import { describe, expect, it } from "vitest";
import type { StoreCall } from "../../src/core/store-call.ts";
import { EmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import {
  type CallBody,
  callOf,
  type Leased,
  type LeaseFields,
  leasedOf,
  leases,
  type TakeFields,
  takenOf,
  takes,
} from "./asking.ts";
import { limitOf, MS, SECOND } from "./pod.ts";

/** A token each 10 ms. */
const LIMIT = limitOf({ name: "api" });
const START = 1_000 * SECOND;

/** A store and a pod that has heard a reply at the start. */
class Story {
  readonly store = new EmbeddedStore();
  now = START;
  readonly heardRaw: number;

  constructor() {
    this.heardRaw = this.store.call(START, callOf(takes([]))).rawUs;
  }

  /** A call that was sent `sentUs` after that reply, and comes now. */
  call(body: CallBody, sentUs: number) {
    const heard: Partial<StoreCall> = { rawHeardUs: this.heardRaw, rawAgoUs: sentUs };
    return this.store.call(this.now, callOf(body, heard));
  }

  take(fields: TakeFields, sentUs = this.now - START) {
    const reply = this.call(takes([{ limit: LIMIT, key: "k", fields }]), sentUs);
    return { ...takenOf(reply), isStale: reply.isStale };
  }

  lease(fields: LeaseFields, sentUs = this.now - START): Leased & { isStale: boolean } {
    const reply = this.call(leases([{ limit: LIMIT, key: "k", fields }]), sentUs);
    return { ...leasedOf(reply), isStale: reply.isStale };
  }
}

describe("a call that has lain in a server's buffers", () => {
  it("for longer than the tolerance admits nothing and takes nothing", () => {
    const story = new Story();
    story.now += 2 * SECOND;
    const stale = { isStale: true, admitted: [0], deniedCost: 0, retryAt: 0, level: 100 };
    expect(story.take({ runs: [[1, 5]] }, 2 * SECOND - 103 * MS)).toMatchObject(stale);
    const { isStale, admitted } = story.take({ runs: [[1, 5]] }, 2 * SECOND - 100 * MS);
    expect({ isStale, admitted }).toEqual({ isStale: false, admitted: [5] });
  });

  it("gives back all the same", () => {
    const story = new Story();
    story.take({ runs: [[1, 50]] });
    story.now += 200 * MS;
    expect(story.take({}).level).toBe(70);
    expect(story.take({ giveBack: 50, takenAt: START, runs: [[1, 1]] }, 0)).toMatchObject({
      isStale: true,
      level: 100,
      admitted: [0],
    });
  });

  it("grants no lease, and its reports count", () => {
    const story = new Story();
    const { slot } = story.lease({ need: 60, want: 60 });
    story.now += 500 * MS;
    const reports = [[slot, 20, 40]] as const;
    const stale = story.lease({ need: 10, want: 10, reports }, 0);
    expect(stale).toMatchObject({ isStale: true, granted: 0, retryAt: 0, level: 80 });
    story.now += 200 * MS;
    expect(story.lease({}).level).toBe(100);
  });

  it("is told from an idle lane, whose clock may have drifted", () => {
    const story = new Story();
    const hour = 3_600 * SECOND;
    story.now += hour;
    expect(story.take({ runs: [[1, 1]] }, hour - 3 * SECOND).isStale).toBe(false);
    expect(story.take({ runs: [[1, 1]] }, hour - 4 * SECOND).isStale).toBe(true);
  });
});

describe("a lease whose slot has ended", () => {
  it("comes back less what has refilled since", () => {
    const story = new Story();
    const { slot } = story.lease({ need: 100, want: 100 });
    const slotEnd = slot * 500 * MS;
    story.now = slotEnd + 300 * MS;
    expect(story.lease({}).level).toBe(30);
    expect(story.lease({ reports: [[slot, 0, 60]] }).level).toBe(60);
    expect(story.lease({ reports: [[slot, 0, 30]] }).level).toBe(60);
  });

  it("does not come back after a loss of the data", () => {
    const story = new Story();
    const { slot } = story.lease({ need: 100, want: 100 });
    const known = story.store.laneValue(0)?.[0] ?? 0;
    story.store.clear();
    story.now = slot * 500 * MS + SECOND;
    const emptied = (fields: LeaseFields): number => {
      const body = leases([{ limit: LIMIT, key: "k", fields }]);
      return leasedOf(story.store.call(story.now, callOf(body, { epoch: known }))).level;
    };
    expect(emptied({})).toBeLessThanOrEqual(0);
    expect(emptied({ reports: [[slot, 0, 100]] })).toBeLessThanOrEqual(0);
  });
});

describe("a limit that was changed and changed back", () => {
  it("gives nothing back of before", () => {
    const store = new EmbeddedStore();
    const other = limitOf({ name: "api", tokens: 10_000, burst: 100 });
    const take = (at: number, limit: typeof LIMIT, fields: TakeFields): number =>
      takenOf(store.call(at, callOf(takes([{ limit, key: "k", fields }])))).level;
    take(START, LIMIT, { runs: [[1, 50]] });
    take(START + 1 * MS, other, {});
    take(START + 4 * MS, LIMIT, { runs: [[1, 80]] });
    const at = START + 5 * MS;
    const level = take(at, LIMIT, {});
    expect(take(at, LIMIT, { giveBack: 50, takenAt: START })).toBe(level);
  });
});
