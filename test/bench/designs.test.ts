import { describe, expect, it } from "vitest";
import type { AskerTimes } from "../../bench/asker.ts";
import { BASELINES, DESIGNS, type DesignName } from "../../bench/design.ts";
import { designLines, processorUsOf } from "../../bench/design-row.ts";
import { type DesignFigures, type DesignRow, highPace, rowOf } from "../../bench/designs.ts";
import { halfOfPeak } from "../../bench/http.ts";

const row = (name: DesignName, perSecond: readonly number[]): DesignRow => ({
  design: DESIGNS.find((design) => design.name === name) as (typeof DESIGNS)[number],
  perSecond,
  callsPerCheck: name.startsWith("aliquot") ? 0.001 : 1,
  clientUs: 6,
  serverUs: name === "lua in process" ? 0 : 20,
  redisUs: 4,
});

const ROWS: readonly DesignRow[] = [
  row("lua in process", [100_000, 90_000, 300_000]),
  row("aliquot by ioredis", [110_000, 90_000, 330_000]),
  row("lua service", [40_000, 50_000, 45_000]),
  row("flexible service", [30_000, 20_000, 25_000]),
  row("aliquot service", [80_000, 100_000, 90_000]),
];

const times = (p99: number): AskerTimes => ({
  p50: 0.1,
  p99,
  p999: p99,
  longest: p99,
  lateP99: 0.01,
  answers: 1_000,
  wrong: 0,
});

const FIGURES: DesignFigures = {
  rows: ROWS,
  times: [
    {
      front: "http",
      perSecond: 36_000,
      part: 0.8,
      rows: [
        { design: rowOf(ROWS, "lua service").design, rounds: [times(1), times(2), times(4)] },
        { design: rowOf(ROWS, "flexible service").design, rounds: [times(9), times(9), times(9)] },
        { design: rowOf(ROWS, "aliquot service").design, rounds: [times(0.2), times(1), times(1)] },
      ],
    },
  ],
};

describe("the comparison of designs", () => {
  it("offers all designs of a front the same part of what its Lua design reached", () => {
    expect(highPace(ROWS, "ioredis", 0.8)).toBe(80_000);
    expect(highPace(ROWS, "http", 0.8)).toBe(36_000);
  });

  it("measures every front against one Lua call for each check", () => {
    for (const front of ["ioredis", "http"] as const) {
      const baseline = DESIGNS.find(({ name }) => name === BASELINES[front]);
      expect(baseline).toMatchObject({ front, checks: 1, title: "one Lua call a check" });
    }
  });

  it("counts the client where it is a part of the design, and not the load of a service", () => {
    expect(processorUsOf(rowOf(ROWS, "lua in process"))).toBe(10);
    expect(processorUsOf(rowOf(ROWS, "aliquot by ioredis"))).toBe(30);
    expect(processorUsOf(rowOf(ROWS, "lua service"))).toBe(24);
  });

  it("prints ratios of neighbouring rounds to the baseline of the same front", () => {
    const lines = designLines(FIGURES);
    const service = lines.find((line) => line.includes(" Aliquot   ") && line.includes("k/s,"));
    expect(service).toContain("90.0 k/s, 2.00 (2.00 to 2.00) times Lua's");
    expect(service).toContain("1/1000 of its calls");
    const resp = lines.find((line) => line.includes("Aliquot over RESP  "));
    expect(resp).toContain("110.0 k/s, 1.10 (1.00 to 1.10) times Lua's");
    expect(resp).toContain("per processor second 0.33 times Lua's");
  });

  it("tells the pace, the p99 as a ratio, and what was offered more than it can do", () => {
    const lines = designLines(FIGURES);
    const head = lines.findIndex((line) => line.includes("36000 checks a second (80 % of"));
    const [lua, flexible, aliquot] = lines.slice(head + 1);
    expect(lua).toContain("p99 2.00 (1.00 to 4.00)");
    expect(lua).not.toContain("of Lua's");
    expect(flexible).toContain("OVERLOADED, it does 25.0 k/s");
    expect(aliquot).toContain("p99 0.250 (0.200 to 0.500) of Lua's");
    expect(aliquot).not.toContain("OVERLOADED");
  });
});

describe("times over HTTP", () => {
  it("are taken at half of what the slower of the two servers reached", () => {
    const server = (perSecond: readonly number[]) => ({
      perSecond,
      perProcessorSecond: 1,
      busy: 1,
    });
    const rounds = { ours: server([80, 90, 70]), bare: server([60, 61, 500]) };
    expect(halfOfPeak(rounds)).toBe(31);
  });
});
