import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Roster } from "../../src/core/exchange.ts";
import { newIdentity } from "../../src/membership/identity.ts";
import { RedisMembership } from "../../src/membership/redis-membership.ts";
import { StaticMembership } from "../../src/membership/static-membership.ts";
import { CoordinatorError, type HeartbeatTerms } from "../../src/ports/coordinator.ts";

const SECOND_US = 1_000_000;
const fleetOf = (pods: number, silent = 0): Roster => ({
  pods,
  silent,
  band: 2 ** Math.ceil(Math.log2(pods)),
  largeCosts: [],
});

/** A store that answers heartbeats as the test says, and notes when they came. */
class FakeStore {
  answer: () => Promise<Roster> = async () => fleetOf(1);
  readonly calls: string[] = [];
  readonly terms: HeartbeatTerms[] = [];

  heartbeat(terms: HeartbeatTerms): Promise<Roster> {
    this.calls.push(`${Math.round(performance.now() - start)} heartbeat`);
    this.terms.push(terms);
    return this.answer();
  }

  async leave(): Promise<void> {
    this.calls.push(`${Math.round(performance.now() - start)} leave`);
  }
}

let start: number;
let store: FakeStore;
let told: string[];
let draw: number;
let membership: RedisMembership;

beforeEach(() => {
  vi.useFakeTimers();
  start = performance.now();
  store = new FakeStore();
  told = [];
  draw = 0.5;
  membership = new RedisMembership({
    coordinator: store,
    random: { draw: () => draw },
    heartbeatUs: SECOND_US,
    timeoutUs: 5 * SECOND_US,
    listener: {
      membershipChanged: (view) => told.push(`${view.pods} pods, ${view.silent} silent`),
      membershipFailed: (error) => told.push(`failed: ${(error as Error).message}`),
    },
  });
});

afterEach(() => vi.useRealTimers());

const fail = (kind: "timeout" | "unreachable" | "refused") => async (): Promise<Roster> => {
  throw new CoordinatorError(kind, kind);
};

describe("membership by heartbeats", () => {
  it("joins at once, counts again soon, and then once per heartbeat", async () => {
    store.answer = async () => fleetOf(3, 1);
    membership.start();
    await membership.joined;
    expect(told).toEqual(["3 pods, 1 silent"]);
    await vi.advanceTimersByTimeAsync(2_500);
    expect(store.calls).toEqual([0, 200, 1200, 2200].map((at) => `${at} heartbeat`));
  });

  it("asks the store to call a pod silent after two and a half heartbeats", async () => {
    membership.start();
    await membership.joined;
    expect(store.terms).toEqual([
      { timeoutUs: 5 * SECOND_US, silentAfterUs: 2.5 * SECOND_US, largeCosts: [] },
    ]);
  });

  it.each([
    [0, 180, 900],
    [0.5, 200, 1_000],
    [0.9, 216, 1_080],
  ])("jitters the pause: a draw of %f waits %d and then %d ms", async (chance, firstMs, waitMs) => {
    draw = chance;
    membership.start();
    await vi.advanceTimersByTimeAsync(firstMs + waitMs + 1);
    const times = [0, firstMs, firstMs + waitMs];
    expect(store.calls).toEqual(times.map((at) => `${at} heartbeat`));
  });

  it("is a member as soon as it is told that the store answers again", async () => {
    store.answer = fail("unreachable");
    membership.start();
    await vi.advanceTimersByTimeAsync(300);
    store.answer = async () => fleetOf(2);
    membership.nudge();
    await membership.joined;
    expect(store.calls).toEqual(["0 heartbeat", "300 heartbeat"]);
    await vi.advanceTimersByTimeAsync(1_100);
    expect(store.calls.slice(2)).toEqual(["500 heartbeat"]);
  });

  it("needs no telling while all is well or a heartbeat is under way", async () => {
    store.answer = () => new Promise(() => {});
    membership.start();
    membership.nudge();
    expect(store.calls).toHaveLength(1);
    store.answer = async () => fleetOf(1);
    const calm = new RedisMembership({
      coordinator: store,
      random: { draw: () => draw },
      heartbeatUs: SECOND_US,
      timeoutUs: 5 * SECOND_US,
      listener: { membershipChanged: () => {}, membershipFailed: () => {} },
    });
    calm.start();
    await calm.joined;
    calm.nudge();
    expect(store.calls).toHaveLength(2);
    await calm.leave();
    calm.nudge();
    expect(store.calls).toHaveLength(3);
  });

  it.each(["unreachable", "timeout", "refused"] as const)(
    "asks a store that is away (%s) about once per heartbeat and not more",
    async (kind) => {
      store.answer = fail(kind);
      membership.start();
      await vi.advanceTimersByTimeAsync(60_000);
      expect(store.calls.length).toBeGreaterThanOrEqual(58);
      expect(store.calls.length).toBeLessThanOrEqual(62);
      expect(told).toHaveLength(store.calls.length);
    },
  );

  it("is counted again within a heartbeat after the store returned, and stays calm", async () => {
    membership.start();
    await membership.joined;
    store.answer = fail("unreachable");
    await vi.advanceTimersByTimeAsync(10_000);
    expect(told.filter((line) => line.startsWith("failed"))).toHaveLength(10);
    store.answer = async () => fleetOf(4);
    await vi.advanceTimersByTimeAsync(1_100);
    expect(told.at(-1)).toBe("4 pods, 0 silent");
  });

  it("never has two heartbeats under way, however long one takes", async () => {
    store.answer = () => new Promise(() => {});
    membership.start();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(store.calls).toHaveLength(1);
  });

  it("leaves after the heartbeat under way has ended, and sends no more", async () => {
    let answer: (roster: Roster) => void = () => {};
    store.answer = () =>
      new Promise((resolve) => {
        answer = resolve;
      });
    membership.start();
    const left = membership.leave();
    await vi.advanceTimersByTimeAsync(100);
    expect(store.calls).toEqual(["0 heartbeat"]);
    answer(fleetOf(1));
    await left;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(store.calls).toEqual(["0 heartbeat", "100 leave"]);
  });
});

describe("a static membership", () => {
  it("tells the configured size once", async () => {
    const views: unknown[] = [];
    const fixed = new StaticMembership(12, {
      membershipChanged: (view) => views.push(view),
      membershipFailed: () => views.push("failed"),
    });
    fixed.start();
    await fixed.joined;
    await fixed.leave();
    expect(views).toEqual([{ pods: 12, silent: 0 }]);
  });
});

describe("an identity", () => {
  it("differs between processes of the same pod", () => {
    const incarnations = Array.from({ length: 100 }, () => newIdentity("pod-1").incarnation);
    expect(new Set(incarnations).size).toBe(100);
    for (const incarnation of incarnations) expect(incarnation).toMatch(/^[0-9a-f]{16}$/);
  });
});
