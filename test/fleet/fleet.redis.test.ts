/**
 * Short runs of the harness. Bounds leave room for a machine that is busy with other tests: what
 * such a machine does to latencies shows in how late the generator itself was, so waits are
 * compared with that. Excess is the certain one, which no delay can raise.
 */
import { describe, expect, it } from "vitest";
import { until } from "../../fleet/until.ts";
import { FleetProcess, isAlive, type Report, report } from "./fleet-process.ts";

const perSecond = ({ seconds }: Report, from: number, to: number): number =>
  seconds.slice(from, to).reduce((sum, { admitted }) => sum + admitted, 0) / (to - from);

const admittedByPods = ({ verdict }: Report): number =>
  Object.values(verdict.admittedByPods).reduce((sum, admitted) => sum + admitted, 0);

/** Part of the checks that took longer than that inside the pods. */
const partSlowerThan = ({ verdict }: Report, ms: number): number => {
  const counts = Object.entries(verdict.decisionTimesMs);
  const sum = (some: typeof counts) => some.reduce((total, [, count]) => total + count, 0);
  return sum(counts.filter(([bound]) => Number(bound) > ms)) / sum(counts);
};

describe("one pod without a store", () => {
  it("admits what an ideal bucket admits", async () => {
    const run = await report("--embedded", "--rate", "500/s", "--offered", "1000", "--duration=3s");
    expect(run.verdict.failed).toBe(0);
    expect(run.verdict.certainExcess.tokens).toBeLessThan(1);
    expect(run.verdict.utilisation).toBeGreaterThan(0.9);
    expect(run.verdict.utilisation).toBeLessThan(1.02);
    expect(run.verdict.offered).toBeGreaterThanOrEqual(2_900);
    // The generator's count and the pod's own are two ways to the same number.
    expect(admittedByPods(run)).toBe(run.verdict.admitted);
  });
});

describe("O10 pods that come, and pods that are killed", () => {
  it("change what the fleet admits by at most a quarter of the burst", async () => {
    const at = ["--at", "2s:add=3", "--at", "6s:kill=3"];
    const run = await report("--pods", "2", "--offered", "400", "--duration", "9s", ...at);
    expect(run.verdict.certainExcess.tokens).toBeLessThanOrEqual(250);
    expect(run.verdict.utilisation).toBeGreaterThan(0.8);
    const counts = run.sights.map(({ pods }) => pods[0]?.livePods);
    expect(counts[0]).toBe(2);
    expect(counts).toContain(5);
    expect(run.verdict.scriptCalls).toBeGreaterThan(0);
    // Every 100 ms a call per pod, heartbeats, and asks of the start: far from one per token.
    expect(run.verdict.scriptCalls / run.verdict.admitted).toBeLessThan(0.25);
  });
});

describe.each(["redis-stop", "redis-hang"])("O7 %s", (outage) => {
  it("leaves the margin of the limit, keeps no check waiting, and passes", async () => {
    const at = ["--at", `2s:${outage}`, "--at", "7s:redis-start"];
    const shape = ["--rate", "400/s", "--margin", "0.5", "--offered", "200", "--pods", "4"];
    const run = await report(...shape, "--duration", "12s", ...at);
    const { verdict, sights } = run;
    expect(verdict.failed).toBe(0);
    expect(verdict.certainExcess.tokens).toBeLessThanOrEqual(100);
    // Half of 400/s from 3 s after the outage began, all of it 3 s after its end. What a starved
    // second loses or puts off may not blur which of the two it is.
    expect(perSecond(run, 5, 7)).toBeGreaterThan(130);
    expect(perSecond(run, 5, 7)).toBeLessThan(300);
    expect(perSecond(run, 10, 12)).toBeGreaterThan(300);
    // A pod that gets no processor does not answer; those that do agree.
    const active = (from: number, to: number) =>
      sights
        .slice(from, to)
        .flatMap(({ pods }) => pods.map(({ fallbackActive }) => fallbackActive))
        .filter((answer) => answer !== undefined);
    expect(new Set(active(5, 6))).toEqual(new Set([true]));
    expect(new Set(active(11, 12))).toEqual(new Set([false]));
    // Checks that waited for Redis would be two in five, for a command's 50 ms at least.
    expect(partSlowerThan(run, 1)).toBeLessThan(0.25);
    expect(partSlowerThan(run, 20)).toBeLessThan(0.05);
    expect(admittedByPods(run)).toBe(verdict.admitted);
  });
});

describe("the harness that is interrupted", () => {
  it.each([
    ["SIGINT", "and says so by its exit code", 130],
    ["SIGKILL", "even then", null],
  ] as const)("by %s leaves no process behind, %s", async (signal, _says, exitCode) => {
    const fleet = new FleetProcess(["--pods", "2", "--offered", "50", "--duration", "60s"]);
    await until("the load runs", 20_000, () => fleet.output.includes("offered"));
    const pids = fleet.descendants();
    // Redis, two sidecars, and the generator.
    expect(pids.length).toBeGreaterThanOrEqual(4);
    fleet.child.kill(signal);
    expect(await fleet.exited).toBe(exitCode);
    await until("all processes are gone", 10_000, () => !pids.some(isAlive));
  });

  it("by a wrong argument has started nothing", async () => {
    const fleet = new FleetProcess(["--at", "5s:explode"]);
    expect(await fleet.exited).toBe(2);
    expect(fleet.output).toContain('there is no act "explode"');
  });
});
