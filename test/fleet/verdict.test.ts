import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AnswerReader } from "../../fleet/answer-reader.ts";
import { boundOf, decisionTimesIn, merged } from "../../fleet/decision-times.ts";
import {
  type Admission,
  certainExcess,
  idealAdmissions,
  rateOf,
  replayedExcess,
} from "../../fleet/excess.ts";
import { type Arrival, arrivalsOf, Journal, OUTCOME } from "../../fleet/journal.ts";
import { Pace } from "../../fleet/pace.ts";
import { judge, percentile } from "../../fleet/verdict.ts";
import { type BucketShape, defineLimit } from "../../src/core/limit.ts";

const SECOND = 1_000_000;

/** 100 tokens per second and a burst of 10: a token in 10 ms. */
const LIMIT: BucketShape = defineLimit({
  name: "limit",
  tokens: 100,
  spanUs: SECOND,
  burst: 10,
  intervalUs: 100_000,
  fallback: { policy: "local", margin: 0.9, maxPods: 20 },
});

const at = (...instantsUs: number[]): Float64Array => Float64Array.from(instantsUs);
const every = (gapUs: number, count: number, fromUs = 0): number[] =>
  Array.from({ length: count }, (_, index) => fromUs + index * gapUs);

describe("the excess of a replay", () => {
  it("is none for a burst and then exactly the rate", () => {
    const instants = [...every(0, 10), ...every(10_000, 500, 10_000)];
    expect(replayedExcess(LIMIT, at(...instants))).toEqual({ tokens: 0, atUs: 0 });
  });

  it("is the tokens beyond the burst at one instant", () => {
    expect(replayedExcess(LIMIT, at(...every(0, 13)))).toEqual({ tokens: 3, atUs: 0 });
  });

  it("is that of the worst interval, wherever it lies", () => {
    // A rest, then 15 in a moment, then a second at twice the rate: 5 and then 100 more of debt.
    const burst = every(0, 15, 5 * SECOND);
    const fast = every(5_000, 200, 5 * SECOND + 5_000);
    const { tokens, atUs } = replayedExcess(LIMIT, at(...burst, ...fast, 20 * SECOND));
    expect(tokens).toBeCloseTo(105, 6);
    expect(atUs).toBe(6 * SECOND);
  });
});

describe("the ideal bucket", () => {
  it("admits everything below the limit and the burst plus the rate above it", () => {
    expect(idealAdmissions(LIMIT, at(...every(20_000, 50)))).toBe(50);
    // From 0 to 2 s, offered ten times the rate: 10 at once and 200 refilled.
    expect(idealAdmissions(LIMIT, at(...every(1_000, 2_001)))).toBe(210);
  });
});

describe("the certain excess", () => {
  /** The definition, word by word. */
  const byDefinition = (admissions: readonly Admission[]): number => {
    let most = 0;
    for (const { sentUs: s } of admissions) {
      for (const { answeredUs: e } of admissions) {
        if (e < s) continue;
        const inside = admissions.filter((each) => each.sentUs >= s && each.answeredUs <= e);
        const allowed = LIMIT.burst + (rateOf(LIMIT) * (e - s)) / SECOND;
        most = Math.max(most, inside.length - allowed);
      }
    }
    return most;
  };

  it("is the largest over all intervals, by its definition", () => {
    const admission = fc.record({ sent: fc.nat(100_000), took: fc.nat(30_000) });
    fc.assert(
      fc.property(fc.array(admission, { maxLength: 60 }), (spans) => {
        const admissions = spans.map(({ sent, took }) => ({
          sentUs: sent,
          answeredUs: sent + took,
        }));
        expect(certainExcess(LIMIT, admissions).tokens).toBeCloseTo(byDefinition(admissions), 6);
      }),
    );
  });

  it("never accuses an ideal bucket, however late its answers are read", () => {
    const load = fc.array(fc.record({ gap: fc.nat(5_000), late: fc.nat(50_000) }), {
      minLength: 50,
      maxLength: 300,
    });
    fc.assert(
      fc.property(load, (requests) => {
        const admissions: Admission[] = [];
        let [nowUs, level, atUs] = [0, 10, 0];
        for (const { gap, late } of requests) {
          nowUs += gap;
          level = Math.min(10, level + (nowUs - atUs) / 10_000);
          atUs = nowUs;
          if (level < 1) continue;
          level -= 1;
          admissions.push({ sentUs: nowUs, answeredUs: nowUs + late });
        }
        expect(certainExcess(LIMIT, admissions).tokens).toBeLessThan(1e-6);
      }),
    );
  });

  it("equals the replay when every answer is immediate", () => {
    const instants = [...every(0, 14), ...every(7_000, 40, 3_000)];
    const admissions = instants.map((us) => ({ sentUs: us, answeredUs: us }));
    const replayed = replayedExcess(LIMIT, at(...instants)).tokens;
    expect(replayed).toBeGreaterThan(4);
    expect(certainExcess(LIMIT, admissions).tokens).toBeCloseTo(replayed, 6);
  });
});

describe("a verdict", () => {
  const arrival = (sentUs: number, outcome: number, more: Partial<Arrival> = {}): Arrival => ({
    pod: 1,
    dueUs: sentUs - 100,
    sentUs,
    answeredUs: sentUs + 1_000,
    outcome,
    source: 0,
    limit: 0,
    ...more,
  });
  const START = 7 * SECOND;
  const change = (seconds: number, cause: string) => ({ atUs: START + seconds * SECOND, cause });

  it("counts what was admitted, denied and failed, and leaves failures out of the ideal", () => {
    const journal = [
      arrival(START, OUTCOME.admitted),
      arrival(START + 1, OUTCOME.denied),
      arrival(START + 2, OUTCOME.failed),
      arrival(START + 3, OUTCOME.admitted),
    ];
    const verdict = judge(LIMIT, journal, [change(0, "start")], START + SECOND);
    const { offered, admitted, denied, failed, ideal } = verdict;
    expect({ offered, admitted, denied, failed, ideal }).toEqual({
      offered: 4,
      admitted: 2,
      denied: 1,
      failed: 1,
      ideal: 3,
    });
    expect(verdict.utilisation).toBeCloseTo(2 / 3);
    expect(verdict.latencyMs).toEqual({ p50: 1, p99: 1, max: 1 });
    expect(verdict.latenessMs.max).toBe(0.1);
  });

  it("tells when the excess was, since the start of the load", () => {
    const journal = every(0, 12, START + SECOND).map((us) => arrival(us, OUTCOME.admitted));
    const { excess } = judge(LIMIT, journal, [change(0, "start")], START + 2 * SECOND);
    expect(excess.tokens).toBe(2);
    expect(excess.atUs).toBe(SECOND + 1_000);
    expect(excess.ofBurst).toBe(0.2);
  });

  it("divides the load at each change, and settles three seconds after it", () => {
    // 10 per second for 5 s, then 20 per second for 3 s, then 40 per second for 2 s.
    const journal = [
      ...every(100_000, 50, START),
      ...every(50_000, 60, START + 5 * SECOND),
      ...every(25_000, 80, START + 8 * SECOND),
    ].map((us) => arrival(us, OUTCOME.admitted, { answeredUs: us }));
    const changes = [change(0, "start"), change(5, "add=1")];
    const { phases } = judge(LIMIT, journal, changes, START + 10 * SECOND);
    expect(phases.map(({ cause }) => cause)).toEqual(["start", "add=1"]);
    expect(phases[0]?.admittedPerSecond).toBeCloseTo(10, 6);
    expect(phases[0]?.settledPerSecond).toBeCloseTo(10, 6);
    expect(phases[1]?.offeredPerSecond).toBeCloseTo(28, 6);
    expect(phases[1]?.settledPerSecond).toBeCloseTo(40, 6);
  });

  it("shows every second and every pod in it", () => {
    const journal = [
      arrival(START, OUTCOME.admitted),
      arrival(START + 999_500, OUTCOME.admitted, { pod: 2 }),
      arrival(START + 1_200_000, OUTCOME.denied),
    ];
    const { timeline } = judge(LIMIT, journal, [change(0, "start")], START + 2 * SECOND);
    expect(timeline.map(({ offered, admitted }) => [offered, admitted])).toEqual([
      [2, 1],
      [1, 1],
    ]);
    expect(timeline[1]?.byPod[2]).toBe(1);
  });

  it("judges a run in which nothing was offered", () => {
    const verdict = judge(LIMIT, [], [change(0, "start")], START + SECOND);
    expect(verdict.utilisation).toBe(1);
    expect(verdict.excess.tokens).toBe(0);
    expect(verdict.latencyMs.p99).toBeNaN();
  });
});

describe("a percentile", () => {
  it("is a value that occurred", () => {
    const values = at(...every(1, 100, 1));
    expect([0.5, 0.99, 1].map((part) => percentile(values, part))).toEqual([50, 99, 100]);
  });
});

describe("the journal", () => {
  it("gives back what was put in, in order", () => {
    const journal = new Journal();
    journal.add(Float64Array.of(1, 10, 11, 12, 1, 0, 0, 2, 20, 21, 22, 0, 2, 1));
    journal.add(Float64Array.of(3, 30, 31, 32, 2, 3, 0));
    expect(journal.size).toBe(3);
    expect([...journal].map(({ pod, answeredUs, source }) => [pod, answeredUs, source])).toEqual([
      [1, 12, 0],
      [2, 22, 2],
      [3, 32, 3],
    ]);
    expect([...arrivalsOf(new Float64Array(0)), ...journal.of(2)]).toEqual([]);
  });
});

describe("the pace of a load", () => {
  const due = (pace: Pace, nowUs: number): number[] => {
    const instants: number[] = [];
    for (let us = pace.next(nowUs); us !== undefined; us = pace.next(nowUs)) instants.push(us);
    return instants;
  };

  it("is even, and catches up after a pause with the instants that were meant", () => {
    const pace = new Pace(SECOND, 4, 0.5);
    expect(due(pace, SECOND)).toEqual([]);
    expect(due(pace, 2 * SECOND)).toEqual([1_125_000, 1_375_000, 1_625_000, 1_875_000]);
    expect(due(pace, 2 * SECOND)).toEqual([]);
  });

  it("changes from the instant of the change", () => {
    const pace = new Pace(0, 1_000, 0);
    due(pace, SECOND);
    pace.change(SECOND, 2);
    expect(due(pace, 2 * SECOND)).toEqual([SECOND, 1_500_000, 2 * SECOND]);
  });

  it("of nothing is never due", () => {
    expect(new Pace(0, 0, 0).next(Number.MAX_SAFE_INTEGER)).toBeUndefined();
  });
});

describe("the reader of answers", () => {
  const ANSWERS =
    'HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{"allowed":true}' +
    "HTTP/1.1 503 Service Unavailable\r\ncontent-length:0\r\nX: y\r\n\r\n" +
    "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 2\r\n\r\n\r\n";

  it("finds the same answers however the bytes are cut", () => {
    for (let size = 1; size <= ANSWERS.length; size += 1) {
      const found: [number, string][] = [];
      const reader = new AnswerReader((status, body) => found.push([status, body]));
      for (let from = 0; from < ANSWERS.length; from += size) {
        reader.push(Buffer.from(ANSWERS.slice(from, from + size)));
      }
      expect(found).toEqual([
        [200, '{"allowed":true}'],
        [503, ""],
        [200, "\r\n"],
      ]);
    }
  });

  it("refuses what tells no length and what is no answer", () => {
    const push = (text: string) => () => new AnswerReader(() => {}).push(Buffer.from(text));
    expect(push("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")).toThrow("Content-Length");
    expect(push("SSH-2.0\r\n\r\n")).toThrow("not an HTTP/1.1 answer");
  });
});

describe("the times inside the pods", () => {
  const page = (...counts: number[]): string =>
    ["0.001", "0.01", "+Inf"]
      .flatMap((le, index) => [
        `aliquot_decision_duration_seconds_bucket{le="${le}",transport="http"} 99`,
        `aliquot_decision_duration_seconds_bucket{le="${le}",transport="uds"} ${counts[index]}`,
      ])
      .join("\n");

  it("are read from the pages of metrics, one transport, and told as bounds", () => {
    const times = merged([decisionTimesIn(page(95, 99, 99)), decisionTimesIn(page(90, 100, 101))]);
    expect([...times]).toEqual([
      [1, 185],
      [10, 14],
      [Number.POSITIVE_INFINITY, 1],
    ]);
    expect([0.5, 0.99, 1].map((part) => boundOf(times, part))).toEqual([
      1,
      10,
      Number.POSITIVE_INFINITY,
    ]);
    expect(boundOf(decisionTimesIn(""), 0.5)).toBeNaN();
  });
});
