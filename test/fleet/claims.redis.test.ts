/**
 * Runs whose every claim must hold, however busy the machine is: the errors, counts and excess of
 * real processes, while pods are replaced and primaries fail over.
 */
import { describe, expect, it } from "vitest";
import { type Report, report } from "./fleet-process.ts";

const LOAD = ["--rate", "200/s", "--offered", "150", "--counted", "40"];

function expectClaims({ verdict }: Report): void {
  for (const { name, holds, says } of verdict.claims) {
    expect([name, says, holds]).toEqual([name, says, true]);
  }
}

describe("a rolling restart", () => {
  it("of all pods in exact mode shows nothing to callers, and the counts agree", async () => {
    const shape = [...LOAD, "--pods", "2", "--mode", "exact", "--duration", "7s"];
    const run = await report(...shape, "--at", "1s:restart");
    expectClaims(run);
    expect(run.verdict.standing.mode).toBe("exact");
    expect(run.verdict.count?.admitted).toBeGreaterThan(250);
    // Both were replaced, and nobody was missed.
    expect(run.sights.at(-1)?.pods.map(({ pod }) => pod)).toEqual([3, 4]);
    expect(run.verdict.utilisation).toBeGreaterThan(0.8);
  });
});

describe("a failover", () => {
  it("by Sentinel in leased mode shows nothing to callers, and no burst comes for nothing", async () => {
    const shape = [...LOAD, "--pods", "2", "--mode", "leased", "--redis", "sentinel"];
    const run = await report(...shape, "--duration", "9s", "--at", "2s:redis-stop");
    expectClaims(run);
    expect(run.sights.some(({ redis }) => redis === "stopped")).toBe(true);
    // The fallback decided for a while, and the new primary does.
    const active = run.sights.map(({ pods }) => pods.some((pod) => pod.fallbackActive === true));
    expect(active).toContain(true);
    expect(active.at(-1)).toBe(false);
  });

  it("in a cluster in hybrid mode loses no more than what was at risk", async () => {
    const shape = [...LOAD, "--pods", "2", "--mode", "hybrid", "--redis", "cluster"];
    const run = await report(...shape, "--duration", "9s", "--at", "2s:redis-stop");
    expectClaims(run);
    expect(run.verdict.count?.admitted).toBeGreaterThan(250);
  });
});
