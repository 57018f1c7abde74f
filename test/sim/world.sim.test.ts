/** The world itself, with schemes that are right by inspection. */
import { expect, test } from "vitest";
import { aliquotScheme } from "../../sim/aliquot-scheme.ts";
import type { Fault } from "../../sim/fault-plan.ts";
import type { Scenario } from "../../sim/scenario.ts";
import { scenarioNamed } from "../../sim/scenario-table.ts";
import { limitOf, SECOND, scenarioOf } from "../../sim/scenarios/scenario-of.ts";
import type { Scheme } from "../../sim/scheme.ts";
import { runScenario } from "../../sim/world.ts";
import { CENTRAL, INDEPENDENT, poisson } from "./toy-schemes.ts";

const LIMIT = limitOf({ rate: 100 });

function scenario(given: Partial<Scenario> = {}): Scenario {
  return scenarioOf("test", {
    name: "toy",
    question: "is the world right?",
    durationUs: 20 * SECOND,
    pods: 4,
    limits: [LIMIT],
    workload: poisson(8),
    ...given,
  });
}

function withFaults(...faults: Fault[]): Scenario {
  return scenario({ faults: () => faults });
}

test("four pods with the whole limit each admit four times the limit", async () => {
  const result = await runScenario(scenario(), INDEPENDENT, 1);
  const limit = result.limits[0];
  // b + r T for each of four pods; the ideal admits it once.
  // Less the few tokens that nobody had asked for yet at the end.
  const each = 100 + 100 * 20;
  expect(limit?.admitted).toBeGreaterThan(4 * each - 20);
  expect(limit?.admitted).toBeLessThanOrEqual(4 * each);
  expect(limit?.ideal).toBeGreaterThan(each - 5);
  expect(limit?.ideal).toBeLessThanOrEqual(each);
  expect(limit?.excess).toBeGreaterThan(3 * each - 20);
  expect(limit?.excess).toBeLessThanOrEqual(3 * each);
  expect(result.violations.map((found) => found.invariant)).toContain("I1");
  expect(result.cost.storeCalls).toBe(0);
});

test("one central bucket is never exceeded and costs a call per request", async () => {
  const result = await runScenario(scenario(), CENTRAL, 1);
  // Answers arrive later than the store's decision and may bunch: a few tokens at most.
  expect(result.limits[0]?.excess).toBeLessThan(3);
  expect(result.limits[0]?.utilisation).toBeGreaterThan(0.995);
  expect(result.cost.storeCalls).toBe(result.fleet.requests);
  expect(result.latency.heldPart).toBe(1);
  expect(result.latency.p50Us).toBeGreaterThan(2_000);
  expect(result.violations).toEqual([]);
});

test("two runs of one seed are equal and two seeds differ", async () => {
  const once = await runScenario(scenario(), CENTRAL, 7);
  const again = await runScenario(scenario(), CENTRAL, 7);
  const other = await runScenario(scenario(), CENTRAL, 8);
  expect(again.traceHash).toBe(once.traceHash);
  expect({ ...again, tookMs: 0 }).toEqual({ ...once, tookMs: 0 });
  expect(other.traceHash).not.toBe(once.traceHash);
});

test("nothing gets through a partition, and everything does after it", async () => {
  const pods = [0, 1, 2, 3];
  const result = await runScenario(
    withFaults({ kind: "partition", atUs: 5 * SECOND, forUs: 5 * SECOND, pods, way: "to-store" }),
    CENTRAL,
    1,
  );
  const admitted = result.limits[0]?.admittedSeries ?? [];
  expect(admitted.slice(52, 99).every((tokens) => tokens === 0)).toBe(true);
  expect(admitted.slice(102, 190).every((tokens) => tokens > 0)).toBe(true);
  expect(result.integrity.messagesLost).toBeGreaterThan(1000);
});

test("a held link delivers what was sent once it is released", async () => {
  const pods = [0, 1, 2, 3];
  const result = await runScenario(
    withFaults({ kind: "hold", atUs: 5 * SECOND, forUs: SECOND, pods, way: "to-store" }),
    CENTRAL,
    1,
  );
  expect(result.integrity.messagesLost).toBe(0);
  // The callers gave up, but the store did the work: its bucket is empty when the link is released.
  const afterRelease = result.limits[0]?.admittedSeries.slice(61, 70) ?? [];
  expect(afterRelease.reduce((sum, tokens) => sum + tokens, 0)).toBeLessThan(110);
});

test("a refusing store is told apart from a hanging one by how soon the caller knows", async () => {
  const down = (how: "refuse" | "hang"): Scenario =>
    withFaults({ kind: "store-down", atUs: 0, forUs: 21 * SECOND, how });
  const refused = await runScenario(down("refuse"), CENTRAL, 1);
  const hung = await runScenario(down("hang"), CENTRAL, 1);
  expect(refused.latency.p50Us).toBeLessThan(10_000);
  expect(hung.latency.p50Us).toBe(50_000);
  expect(refused.limits[0]?.admitted).toBe(0);
  expect(hung.limits[0]?.admitted).toBe(0);
});

test("a crashed pod gets nothing more, and its requests go to the others", async () => {
  const result = await runScenario(
    withFaults({ kind: "crash", atUs: 10 * SECOND, pods: [3] }),
    INDEPENDENT,
    1,
  );
  const crashed = result.fleet.perPod.find((pod) => pod.pod === 3);
  expect(crashed?.endedAtUs).toBe(10 * SECOND);
  expect(crashed?.admittedSeries.slice(101).every((part) => part === 0)).toBe(true);
  expect(result.fleet.podsSeries.at(-1)).toBe(3);
  expect(result.fleet.requests).toBeGreaterThan(15_000);
});

test("a stalled pod answers what has waited when it goes on", async () => {
  const result = await runScenario(
    withFaults({ kind: "stall", atUs: 5 * SECOND, forUs: 2 * SECOND, pods: [1] }),
    INDEPENDENT,
    1,
  );
  expect(result.latency.maxUs).toBeGreaterThan(1_900_000);
  expect(result.latency.maxUs).toBeLessThanOrEqual(2_000_000);
  expect(result.integrity.forgotten).toBe(0);
});

test("joined pods get their part and a bounced pod comes back under its number", async () => {
  const result = await runScenario(
    withFaults(
      { kind: "join", atUs: 5 * SECOND, count: 2 },
      { kind: "bounce", atUs: 10 * SECOND, forUs: SECOND, pods: [0] },
    ),
    INDEPENDENT,
    1,
  );
  expect(result.fleet.perPod.map((pod) => pod.pod)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(result.fleet.podsSeries.slice(60, 62)).toEqual([6, 6]);
  expect(result.fleet.podsSeries[104]).toBe(5);
  expect(result.fleet.podsSeries.at(-1)).toBe(6);
});

test("a store that fails over brings back the state of then", async () => {
  let state = "";
  const seen: string[] = [];
  const scheme = {
    ...CENTRAL,
    start: () => ({
      store: {
        snapshot: () => {
          const copy = state;
          return () => {
            state = copy;
          };
        },
        clear: () => {
          state = "empty";
        },
      },
      node: (context: Parameters<Awaited<ReturnType<typeof CENTRAL.start>>["node"]>[0]) => ({
        request: (
          _checks: unknown,
          answer: (answer: { allowed: boolean; retryAfterUs: number }) => void,
        ) => {
          seen.push(state);
          state = String(Math.floor(context.nowUs() * 0) + seen.length);
          answer({ allowed: false, retryAfterUs: 0 });
        },
      }),
    }),
  };
  await runScenario(
    withFaults({ kind: "store-failover", atUs: 10 * SECOND, lagUs: SECOND }),
    scheme,
    1,
  );
  const back = seen.findIndex((value, i) => i > 1 && Number(value) < i);
  expect(back).toBeGreaterThan(0);
  const went = back - Number(seen[back]);
  // 800 requests a second arrive, so the state of a second ago is about 800 requests old.
  expect(went).toBeGreaterThan(700);
  expect(went).toBeLessThan(900);
});

test("20 pods at r = 1000/s for a minute take under four seconds of processor time", async () => {
  const before = process.cpuUsage();
  const result = await runScenario(scenarioNamed("steady-2x-minute"), aliquotScheme() as Scheme, 1);
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1e6).toBeLessThan(4);
  expect(result.fleet.requests).toBeGreaterThan(115_000);
});
