import { beforeEach, describe, expect, it } from "vitest";
import { type Counts, noReconciles, Tally } from "../../src/core/tally.ts";
import { DurationCounts } from "../../src/observe/duration-counts.ts";
import { HISTORY_SECONDS, History } from "../../src/observe/history.ts";

const SECOND = 1_000_000;

let now: number;
let counts: Counts;
let durations: DurationCounts;
let history: History;

function countsOf(...names: readonly string[]): Counts {
  return {
    limits: names.map((name) => ({ name, tally: new Tally() })),
    trackedKeys: 12,
    evictedKeys: 0,
    pods: 4,
    listing: undefined,
    fallbackActive: false,
    storeUp: true,
    lostTokens: 0,
    reconciled: noReconciles(),
  };
}

beforeEach(() => {
  now = 100 * SECOND;
  counts = countsOf("api", "login");
  durations = new DurationCounts();
  history = new History(now);
});

type Outcome = "allowed" | "denied" | "shadowDenied";

function decide(limit: string, outcome: Outcome, times = 1): void {
  const tally = counts.limits.find(({ name }) => name === limit)?.tally;
  const decision = {
    allowed: outcome !== "denied",
    wouldDeny: outcome === "shadowDenied",
    source: "local",
  };
  for (let i = 0; i < times; i += 1) {
    tally?.count(decision as Parameters<Tally["count"]>[0], 1);
    durations.observeUs(300);
  }
}

function look(afterSeconds = 1): void {
  now += afterSeconds * SECOND;
  history.record(now, counts, [durations]);
}

describe("the history of five minutes", () => {
  it("has what each second brought, for all limits and for each", () => {
    decide("api", "allowed", 3);
    look();
    decide("api", "denied", 2);
    decide("login", "allowed", 7);
    decide("login", "shadowDenied", 1);
    look();
    expect(history.last).toBe(102);
    expect(history.columns(0)).toMatchObject({
      first: 101,
      allowed: [3, 7],
      denied: [0, 2],
      shadowDenied: [0, 1],
      pods: [4, 4],
      trackedKeys: [12, 12],
      tier: [0, 0],
    });
    expect(history.columns(0, "api")).toMatchObject({ allowed: [3, 0], denied: [0, 2] });
    expect(history.columns(101, "login")).toMatchObject({ first: 102, allowed: [7], denied: [0] });
    expect(history.columns(102)).toMatchObject({ first: 103, allowed: [], pods: [] });
  });

  it("is empty before the first second, and zero for a limit that decided nothing", () => {
    expect(history.columns(0)).toMatchObject({ first: 101, allowed: [], pods: [], p99Ms: [] });
    look();
    expect(history.columns(0, "login").allowed).toEqual([0]);
    expect(history.columns(0, "unknown").allowed).toEqual([0]);
    expect(history.rates("unknown")).toEqual([0, 0, 0]);
    expect(history.outline("unknown")).toEqual({ admitted: [], denied: [] });
  });

  it("keeps the last 300 seconds and no more", () => {
    for (let i = 0; i < 2 * HISTORY_SECONDS; i += 1) {
      decide("api", "allowed", i);
      look();
    }
    const { first, allowed } = history.columns(0);
    expect(allowed).toHaveLength(HISTORY_SECONDS);
    expect([first, allowed[0], allowed.at(-1)]).toEqual([401, 300, 599]);
  });

  it("spreads what came during a standstill over the seconds that were missed", () => {
    look();
    decide("api", "allowed", 12);
    look(4);
    expect(history.columns(0).allowed).toEqual([0, 3, 3, 3, 3]);
    decide("api", "allowed", 1_000_000);
    look(1_000);
    const { allowed } = history.columns(0);
    expect(allowed).toEqual(Array.from({ length: HISTORY_SECONDS }, () => 1_000));
  });

  it("takes a second look within a second together with the next", () => {
    decide("api", "allowed", 5);
    look(0.5);
    look(0.5);
    expect(history.columns(0).allowed).toEqual([5]);
  });

  it("tells present rates as means of five seconds, or of what there is", () => {
    decide("api", "denied", 4);
    look();
    expect(history.rates("api")).toEqual([0, 4, 0]);
    for (let i = 0; i < 4; i += 1) look();
    expect(history.rates("api")).toEqual([0, 0.8, 0]);
    expect(history.rates()).toEqual([0, 0.8, 0]);
    look();
    expect(history.rates()).toEqual([0, 0, 0]);
  });

  it("outlines a limit in 60 means of five seconds that do not move between looks", () => {
    for (let i = 0; i < 10; i += 1) {
      decide("api", "allowed", 2);
      decide("api", "shadowDenied", 1);
      decide("api", "denied", 4);
      look();
    }
    const { admitted, denied } = history.outline("api");
    expect([admitted.length, denied.length]).toEqual([60, 60]);
    // Seconds 101 to 110: what is known of 100..104, all of 105..109, and 110.
    expect(admitted.slice(-4)).toEqual([0, 3, 3, 3]);
    expect(denied.slice(-4)).toEqual([0, 4, 4, 4]);
  });

  it("tells the times of half and of 99 in 100 decisions, and nothing where there was none", () => {
    for (let i = 0; i < 98; i += 1) durations.observeUs(200);
    durations.observeUs(40_000);
    durations.observeUs(9_000_000);
    look();
    look();
    const { medianMs, p99Ms } = history.columns(0);
    expect(medianMs[0]).toBeCloseTo(0.1765, 3);
    expect(p99Ms[0]).toBeCloseTo(50, 3);
    expect([medianMs[1], p99Ms[1]]).toEqual([Number.NaN, Number.NaN]);
  });

  it("does not go down when a reload takes a limit away, and follows one that comes back", () => {
    decide("api", "allowed", 5);
    look();
    counts = countsOf("login");
    decide("login", "allowed", 2);
    look();
    counts = { ...counts, limits: [...counts.limits, ...countsOf("api").limits] };
    decide("api", "allowed", 3);
    look();
    expect(history.columns(0).allowed).toEqual([5, 2, 3]);
    expect(history.columns(0, "api").allowed).toEqual([0, 0, 3]);
  });

  it("marks the seconds in which the store was doubtful or out of reach", () => {
    look();
    counts = { ...counts, storeUp: false };
    look();
    counts = { ...counts, fallbackActive: true };
    look();
    expect(history.columns(0).tier).toEqual([0, 1, 2]);
  });

  it("follows a thousand limits one by one and the rest in the sum", () => {
    counts = countsOf(...Array.from({ length: 1_001 }, (_, i) => `l${i}`));
    for (let i = 0; i < 1_001; i += 1) decide(`l${i}`, "allowed");
    look();
    expect(history.columns(0).allowed).toEqual([1_001]);
    expect(history.columns(0, "l999").allowed).toEqual([1]);
    expect(history.columns(0, "l1000").allowed).toEqual([0]);
  });
});
