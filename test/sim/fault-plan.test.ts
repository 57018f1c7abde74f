/** Plans of faults are data: printed, read back, made smaller. */
import { describe, expect, test } from "vitest";
import { type Fault, faultToLine, parseFault } from "../../sim/fault-plan.ts";
import { shrinkPlan } from "../../sim/shrink.ts";

const ONE_OF_EACH: readonly Fault[] = [
  { kind: "join", atUs: 10_000_000, count: 40 },
  { kind: "leave", atUs: 1, pods: [3] },
  { kind: "crash", atUs: 20_000_000, pods: [10, 11, 12, 59] },
  { kind: "bounce", atUs: 5_500_000, forUs: 250_000, pods: [0, 1] },
  { kind: "stall", atUs: 0, forUs: 2_000_000, pods: [7] },
  { kind: "pause", atUs: 0, forUs: 5_000_000, pods: [7, 9] },
  { kind: "drift", atUs: 0, pods: [1], rate: 1.01 },
  { kind: "pod-clock", atUs: 3_000_000, pods: [1], byUs: -3_600_000_000 },
  { kind: "partition", atUs: 1_000_000, forUs: 1_000_000, pods: [0, 2, 4], way: "to-store" },
  { kind: "hold", atUs: 1_000_000, forUs: 1_000_000, pods: [0], way: "both" },
  {
    kind: "link",
    atUs: 1_000_000,
    forUs: 30_000_000,
    pods: [0, 1, 2],
    loss: 0.1,
    duplicate: 0.05,
    reorder: 0.2,
    lateUs: 30_000,
    delayUs: 0,
  },
  { kind: "store-down", atUs: 10_000_000, forUs: 10_000_000, how: "hang" },
  { kind: "store-flap", atUs: 1_000_000, forUs: 20_000_000, everyUs: 2_000_000, downUs: 1_000_000 },
  { kind: "store-slow", atUs: 1_000_000, forUs: 5_000_000, byUs: 40_000 },
  { kind: "store-failover", atUs: 10_000_000, lagUs: 1_000_000 },
  { kind: "store-empty", atUs: 10_000_000 },
  { kind: "store-clock", atUs: 10_000_000, byUs: -10_000_000 },
  { kind: "config", atUs: 10_000_000, set: 0, overUs: 2_000_000 },
];

test("every kind of fault is read back from its own line", () => {
  for (const fault of ONE_OF_EACH) expect(parseFault(faultToLine(fault))).toEqual(fault);
});

test("a line reads like a sentence", () => {
  expect(faultToLine(ONE_OF_EACH[2] as Fault)).toBe("20s crash pods=10-12,59");
  expect(faultToLine(ONE_OF_EACH[8] as Fault)).toBe("1s partition pods=0,2,4 for=1s way=to-store");
});

test.each([
  ["10s store-emty", "store-empty"],
  ["10s partition pods=0", "for="],
  ["10s partition pods=0 for=1s way=up", "to-store"],
  ["10s crash pods=5-2", "0-4,7"],
  ["10s crash pods=0-99999999", "below 10000"],
  ["10 store-empty", "1.5s"],
  ["10s join count=many", "no number"],
])("%s is refused with what would be accepted: %s", (line, hint) => {
  expect(() => parseFault(line)).toThrow(hint);
});

describe("shrinking", () => {
  test("leaves the one fault that matters, as short and as narrow as it still fails", async () => {
    const guilty = (plan: readonly Fault[]): boolean =>
      plan.some((f) => f.kind === "stall" && f.forUs >= 500_000 && f.pods.includes(7));
    const plan = ONE_OF_EACH.map((fault) =>
      fault.kind === "stall" ? { ...fault, pods: [5, 6, 7, 8] } : fault,
    );
    const smallest = await shrinkPlan(plan, async (candidate) => guilty(candidate));
    expect(smallest).toEqual([{ kind: "stall", atUs: 0, forUs: 500_000, pods: [7] }]);
  });

  test("keeps two faults that only fail together", async () => {
    const kinds = (plan: readonly Fault[]): string[] => plan.map((fault) => fault.kind);
    const smallest = await shrinkPlan(ONE_OF_EACH, async (candidate) =>
      ["join", "store-empty"].every((kind) => kinds(candidate).includes(kind)),
    );
    expect(kinds(smallest)).toEqual(["join", "store-empty"]);
  });

  test("gives back the plan when every smaller one passes", async () => {
    const smallest = await shrinkPlan(ONE_OF_EACH, async (candidate) => candidate === ONE_OF_EACH);
    expect(smallest).toBe(ONE_OF_EACH);
  });
});
