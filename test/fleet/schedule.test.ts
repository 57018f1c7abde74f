import { describe, expect, it } from "vitest";
import { parseOptions, type RunOptions, UsageError } from "../../fleet/options.ts";
import { inOrder, parseStep, type Step } from "../../fleet/schedule.ts";

describe("a step of a schedule", () => {
  it.each([
    ["5s:add=2", 5_000_000, { kind: "add", pods: 2 }],
    ["500ms:kill", 500_000, { kind: "kill", pods: 1 }],
    ["1m:term=3", 60_000_000, { kind: "term", pods: 3 }],
    ["4s:restart", 4_000_000, { kind: "restart" }],
    ["5s:redis-failover", 5_000_000, { kind: "redis-failover" }],
    ["0s:redis-stop", 0, { kind: "redis-stop" }],
    ["7s:redis-hang", 7_000_000, { kind: "redis-hang" }],
    ["9s:redis-start", 9_000_000, { kind: "redis-start" }],
    ["3s:redis=DEL a:{0}:b", 3_000_000, { kind: "redis", command: ["DEL", "a:{0}:b"] }],
    ["2s:offer=0", 2_000_000, { kind: "offer", perSecond: 0, pod: undefined }],
    ["2s:offer=12.5/s@pod-3", 2_000_000, { kind: "offer", perSecond: 12.5, pod: 3 }],
    ["2s:offer=7@3", 2_000_000, { kind: "offer", perSecond: 7, pod: 3 }],
  ])("%s is read", (text, atUs, act) => {
    expect(parseStep(text)).toEqual({ atUs, act, text: text.slice(text.indexOf(":") + 1) });
  });

  it.each([
    ["add=2", "TIME:ACT"],
    ["5:add=2", '"5" is no time'],
    ["5s:ad=2", 'no act "ad"'],
    ["5s:add=0", "from 1 to 200"],
    ["5s:kill=201", "from 1 to 200"],
    ["5s:redis-stop=1", "takes no value"],
    ["5s:restart=2", "takes no value"],
    ["5s:redis", "needs a command"],
    ["5s:offer=fast", "needs a rate"],
    ["5s:offer=-1", "needs a rate"],
    ["5s:offer=5@pod-0", "needs a pod"],
  ])("%s is refused and the sentence says %s", (text, says) => {
    expect(parseStep(text)).toContain(says);
  });

  it("comes in order of time, and as written at one instant", () => {
    const texts = ["9s:redis-start", "5s:add", "5s:kill", "1s:term"];
    const steps = texts.map((text) => parseStep(text) as Step);
    expect(inOrder(steps).map(({ text }) => text)).toEqual(["term", "add", "kill", "redis-start"]);
  });
});

describe("the options of a run", () => {
  const read = (...args: string[]): RunOptions => parseOptions(args) as RunOptions;
  const problems = (...args: string[]): string => {
    try {
      parseOptions(args);
      return "none";
    } catch (error) {
      return error instanceof UsageError ? error.message : `threw ${String(error)}`;
    }
  };

  it("are a story of 40 s when there are none", () => {
    const { pods, durationUs, steps } = read();
    expect([pods, durationUs / 1e6]).toEqual([3, 40]);
    expect(steps.map(({ act }) => act.kind)).toEqual(["add", "kill", "redis-stop", "redis-start"]);
    expect(read("--json").steps).toHaveLength(4);
  });

  it("hold no story as soon as something is asked for", () => {
    expect(read("--pods", "4").steps).toEqual([]);
  });

  it("give a burst of one second of the rate", () => {
    expect(read("--rate", "250/s").burst).toBe(250);
    expect(read("--rate", "90/m").burst).toBe(1);
    expect(read("--rate", "250/s", "--burst", "9").limit.burst).toBe(9);
  });

  it("know the pods with a rate of their own", () => {
    expect([...read("--hot", "pod-1=2000", "--hot", "3=0").hot]).toEqual([
      [1, 2_000],
      [3, 0],
    ]);
  });

  it("are refused with every problem at once", () => {
    const said = problems("--pods", "0", "--rate", "fast", "--margin", "2", "--at", "5s:what");
    expect(said.split("\n")).toHaveLength(4);
    for (const part of ["--pods", "--rate", "--margin", "--at"]) expect(said).toContain(part);
  });

  it.each([
    [["--embedded", "--pods", "2"], "one pod"],
    [["--embedded", "--at", "1s:redis-stop"], "without Redis"],
    [["--duration", "5s", "--at", "5s:add"], "after the end"],
    [["--duration", "10m", "--offered", "90000"], "can be kept"],
    [["--rate", "7/h", "--burst", "9007199254740991"], "cannot be counted"],
    [["--redis", "twin"], "one of single, sentinel, cluster"],
    [["--mode", "strict"], "one of auto, hybrid, leased, exact"],
    [["--counted", "-1"], "--counted"],
    [["--at", "1s:redis-failover"], "needs --redis sentinel or cluster"],
    [["--pods", "1", "--at", "1s:restart"], "--pods 2 or more"],
    [["--what"], "--what"],
  ])("%j are refused and the sentence says %s", (args, says) => {
    expect(problems(...args)).toContain(says);
  });
});
