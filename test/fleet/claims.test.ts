import { describe, expect, it } from "vitest";
import { type Claim, claimsOf } from "../../fleet/claims.ts";
import { type Danger, dangerOf } from "../../fleet/danger.ts";
import { type Arrival, Journal, LIMIT, OUTCOME } from "../../fleet/journal.ts";
import { parseOptions, type RunOptions } from "../../fleet/options.ts";
import type { RunResult } from "../../fleet/run.ts";
import { type Act, parseStep, type Step } from "../../fleet/schedule.ts";
import { judge } from "../../fleet/verdict.ts";

const SECOND = 1_000_000;

/** Records of a journal: answered at that instant, by pod 1, of the counted limit. */
function journalOf(...arrivals: Partial<Arrival>[]): Journal {
  const journal = new Journal();
  for (const arrival of arrivals) {
    const { pod = 1, answeredUs = 0, outcome = OUTCOME.admitted, limit = LIMIT.counted } = arrival;
    journal.add(Float64Array.of(pod, answeredUs, answeredUs, answeredUs, outcome, 0, limit));
  }
  return journal;
}

/** Ten tokens of the counted limit, one each second from the first. */
const TEN = Array.from({ length: 10 }, (_, i) => ({ answeredUs: (i + 1) * SECOND }));

interface Seen extends Partial<Omit<RunResult, "journal">> {
  readonly arrivals?: readonly Partial<Arrival>[];
  readonly stored?: number;
  readonly denied?: number;
}

type Claims = Readonly<Record<"errors" | "waits" | "excess" | "counts" | "counters", Claim>>;

function claims(seen: Seen, ...args: readonly string[]): Claims {
  const options = parseOptions(["--rate", "100/s", ...args]) as RunOptions;
  const journal = journalOf(...(seen.arrivals ?? TEN));
  const { stored = 10, denied = 0 } = seen;
  const result: RunResult = {
    verdict: judge(options.limit, journal.of(LIMIT.measured), [{ atUs: 0, cause: "start" }], 1),
    standing: { mode: "hybrid", bound: 10 },
    count: { admitted: 10, denied, stored, differing: [], settled: true },
    dangers: [],
    outagesUs: [],
    failures: [],
    journal,
    scriptCalls: 0,
    admittedByPods: new Map(),
    decisionTimes: new Map(),
    loopDelayMs: 0,
    sights: [],
    podsMost: 1,
    ...seen,
  };
  const all = claimsOf(options, result).map((claim) => [claim.name, claim]);
  return Object.fromEntries(all) as Claims;
}

const STRICT = { mode: "exact", bound: 5 } as const;
const LEASED = { mode: "leased", bound: 0 } as const;
const FAILOVER: Danger = { kind: "failover", fromUs: 3.5 * SECOND, toUs: 5.5 * SECOND };

describe("what a run must show", () => {
  it("holds when nothing is wrong", () => {
    const all = Object.values(claims({}));
    expect(all.map(({ name }) => name)).toEqual([
      "errors",
      "waits",
      "excess",
      "counts",
      "counters",
    ]);
    for (const { name, holds } of all) expect([name, holds]).toEqual([name, true]);
  });

  it("is that no error reaches a caller whose pod was not killed", () => {
    const failed = { outcome: OUTCOME.failed, pod: 2 };
    const why = ["pod-2: status 503"];
    const broken = claims({ arrivals: [...TEN, failed], failures: why }).errors;
    expect(broken.holds).toBe(false);
    expect(broken.says).toContain("status 503");
    const killed = claims({ arrivals: [...TEN, failed], dangers: [{ kind: "kill", pods: [2] }] });
    expect(killed.errors.holds).toBe(true);
  });

  it("is that no decision takes longer than the timeout and two delays of the event loop", () => {
    const decisionTimes = new Map([
      [10, 500],
      [20, 3],
      [50, 2],
      [100, 0],
    ]);
    expect(claims({ decisionTimes, loopDelayMs: 0 }).waits.holds).toBe(false);
    expect(claims({ decisionTimes, loopDelayMs: 4 }).waits.holds).toBe(false);
    // Slower than 20 ms: twice 6 ms and the timeout of 10 ms may be all of it.
    expect(claims({ decisionTimes, loopDelayMs: 6 }).waits.holds).toBe(true);
    expect(claims({ decisionTimes }, "--decision-timeout", "20ms").waits.holds).toBe(true);
    const slower = new Map([...decisionTimes, [100, 1]]);
    expect(claims({ decisionTimes: slower, loopDelayMs: 6 }).waits.holds).toBe(false);
  });

  it("is that excess stays below the bound, with what a loss or a join may add", () => {
    const burst = Array.from({ length: 125 }, () => ({ answeredUs: 5, limit: LIMIT.measured }));
    expect(claims({ arrivals: burst }).excess.holds).toBe(false);
    const dangers: Danger[] = [{ kind: "loss", cause: "FLUSHALL" }, FAILOVER];
    expect(claims({ arrivals: burst, dangers }).excess.holds).toBe(true);
    expect(claims({ arrivals: burst, dangers, standing: LEASED }).excess.holds).toBe(false);
  });
});

describe("the counts of a run", () => {
  it("agree to the token in hybrid mode", () => {
    expect(claims({ stored: 10 }).counts.holds).toBe(true);
    expect(claims({ stored: 9 }).counts.holds).toBe(false);
    expect(claims({ stored: 11, denied: 5 }).counts.holds).toBe(false);
    expect(claims({ stored: Number.NaN }).counts.holds).toBe(false);
  });

  it("may lack after a failover what was admitted around it, and no more", () => {
    expect(claims({ stored: 8, dangers: [FAILOVER] }).counts.holds).toBe(true);
    expect(claims({ stored: 7, dangers: [FAILOVER] }).counts.holds).toBe(false);
    expect(claims({ stored: 11, dangers: [FAILOVER] }).counts.holds).toBe(false);
  });

  it("agree to the token in a strict mode, whatever was denied", () => {
    for (const standing of [STRICT, LEASED]) {
      expect(claims({ stored: 10, denied: 9, standing }).counts.holds).toBe(true);
      expect(claims({ stored: 11, denied: 9, standing }).counts.holds).toBe(false);
      expect(claims({ stored: 9, denied: 9, standing }).counts.holds).toBe(false);
    }
  });

  it("may hold more by the checks that waited for a server when it was stopped", () => {
    const outagesUs = [6 * SECOND];
    const denied = { outcome: OUTCOME.denied, answeredUs: 6.01 * SECOND };
    const late = { outcome: OUTCOME.denied, answeredUs: 6.5 * SECOND };
    const seen = { arrivals: [...TEN, denied, late], outagesUs, denied: 2, standing: STRICT };
    expect(claims({ ...seen, stored: 11 }).counts.holds).toBe(true);
    expect(claims({ ...seen, stored: 12 }).counts.holds).toBe(false);
  });

  it("may hold more by a lease that a server had no time to tell of", () => {
    const outagesUs = [6 * SECOND];
    expect(claims({ stored: 11, outagesUs, standing: LEASED }).counts.holds).toBe(true);
    expect(claims({ stored: 12, outagesUs, standing: LEASED }).counts.holds).toBe(false);
  });

  it("may hold more by what a killed pod held", () => {
    const dangers: Danger[] = [{ kind: "kill", pods: [2] }];
    const arrivals = [...TEN, { pod: 2, outcome: OUTCOME.denied }];
    expect(claims({ arrivals, stored: 11, dangers, standing: STRICT }).counts.holds).toBe(true);
    expect(claims({ arrivals, stored: 12, dangers, standing: STRICT }).counts.holds).toBe(false);
  });

  it("say nothing of a store that lost its data, but the pods must have settled", () => {
    const dangers: Danger[] = [{ kind: "loss", cause: "FLUSHALL" }];
    expect(claims({ stored: 4_000, dangers }).counts.holds).toBe(true);
    const count = { admitted: 10, denied: 0, stored: 10, differing: ["pod-1"], settled: false };
    const unsettled = claims({ count, dangers });
    expect(unsettled.counts.holds).toBe(false);
    expect(unsettled.counters.holds).toBe(false);
  });
});

describe("the danger of an act", () => {
  const kindOf = (text: string, redis: RunOptions["redis"], mode: RunOptions["mode"]) => {
    const { act } = parseStep(`1s:${text}`) as Step & { readonly act: Act };
    return dangerOf(act, { redis, mode }, 1, 2)?.kind;
  };

  it.each([
    ["redis-stop", "single", "hybrid", "loss"],
    ["redis-stop", "sentinel", "hybrid", "failover"],
    ["redis-stop", "cluster", "exact", "loss"],
    ["redis-hang", "single", "leased", undefined],
    ["redis-hang", "sentinel", "auto", "failover"],
    ["redis-failover", "cluster", "hybrid", "failover"],
    ["redis=FLUSHALL", "single", "hybrid", "loss"],
    ["redis=PING", "single", "hybrid", undefined],
    ["restart", "single", "exact", undefined],
  ] as const)("%s on %s in %s mode is %s", (text, redis, mode, kind) => {
    expect(kindOf(text, redis, mode)).toBe(kind);
  });
});
