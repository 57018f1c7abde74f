import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatDuration, parseDuration } from "../../src/config/duration.ts";
import { formatRate, parseRate } from "../../src/config/rate.ts";
import { defineLimit } from "../../src/core/limit.ts";

const shape = (text: string) => {
  const rate = parseRate(text);
  if (typeof rate === "string") throw new Error(`${text}: ${rate}`);
  const fallback = { policy: "local", margin: 1, maxPods: 1 } as const;
  return defineLimit({ name: "a", ...rate, burst: 1, intervalUs: 100_000, fallback });
};

describe("rates", () => {
  it.each([
    ["100/s", 100, 1_000_000],
    ["1/m", 1, 60_000_000],
    ["7/h", 7, 3_600_000_000],
    ["1/d", 1, 86_400_000_000],
    ["10/15m", 10, 900_000_000],
    ["1/2s", 1, 2_000_000],
    ["5/100ms", 5, 100_000],
    ["3.0/s", 3, 1_000_000],
    ["1000000000/s", 1_000_000_000, 1_000_000],
  ])("are whole tokens per span: %s", (text, tokens, spanUs) => {
    expect(parseRate(text)).toEqual({ tokens, spanUs });
  });

  it.each([
    ["0.5/s", "1/2s"],
    ["2.5/s", "5/2s"],
    ["0.1/15m", "1/150m"],
    ["1.50/m", "3/2m"],
    ["0.25/ms", "1/4ms"],
  ])("with a fraction are refused with the same rate in whole tokens: %s", (text, same) => {
    expect(parseRate(text)).toBe(`must be whole tokens per span; write ${same}`);
    expect(parseRate(same)).toBeTypeOf("object");
  });

  it.each([
    ["", /such as 100\/s/],
    ["100", /such as 100\/s/],
    ["100/", /such as 100\/s/],
    ["/s", /such as 100\/s/],
    ["100 / s", /such as 100\/s/],
    ["1e3/s", /such as 100\/s/],
    ["100/w", /such as 100\/s/],
    ["1/-5s", /such as 100\/s/],
    ["-1/s", /positive/],
    ["-0.5/s", /positive/],
    ["0/s", /at least one token/],
    ["0.0/s", /at least one token/],
    ["5/0s", /span longer than zero/],
    ["1/367d", /at most 366d/],
    ["1000000000000000/s", /below 10\^15/],
  ])("that are none are refused in a sentence: %s", (text, sentence) => {
    expect(parseRate(text)).toMatch(sentence);
  });

  it.each([
    ["100/s", "100/s"],
    ["60/m", "1/s"],
    ["10/15m", "40/h"],
    ["7/13s", "7/13s"],
    ["1/2s", "30/m"],
    ["1500/7ms", "1500/7ms"],
    ["1/366d", "1/8784h"],
  ])("are written in their most familiar form: %s", (text, written) => {
    expect(formatRate(shape(text))).toBe(written);
  });

  it("that were written are read as the same rate", () => {
    const unit = fc.constantFrom("ms", "s", "m", "h", "d");
    const span = fc.integer({ min: 1, max: 300 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000_000 }), span, unit, (tokens, count, name) => {
        const limit = shape(`${tokens}/${count}${name}`);
        const again = shape(formatRate(limit));
        expect([again.refill, again.period * again.tickUs]).toEqual([
          limit.refill,
          limit.period * limit.tickUs,
        ]);
      }),
    );
  });
});

describe("durations", () => {
  it.each([
    ["100ms", 100_000],
    ["0s", 0],
    ["1s", 1_000_000],
    ["2m", 120_000_000],
    ["15m", 900_000_000],
    ["1h", 3_600_000_000],
  ])("are a whole number and a unit: %s", (text, us) => {
    expect(parseDuration(text)).toBe(us);
  });

  it.each(["", "1", "s", "1.5s", "-1s", "1 s", "1d", "1us", "1S", "9999999999999h"])(
    "that are none are refused: %s",
    (text) => {
      expect(parseDuration(text)).toBeUndefined();
    },
  );

  it("that were written are read as the same time", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1_000_000_000 }), (ms) => {
        expect(parseDuration(formatDuration(ms * 1_000))).toBe(ms * 1_000);
      }),
    );
  });
});
