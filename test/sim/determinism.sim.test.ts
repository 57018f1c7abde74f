/** A run depends on its seed and on nothing else. */
import { describe, expect, test } from "vitest";
import { aliquotScheme } from "../../sim/aliquot-scheme.ts";
import { scenarioNamed } from "../../sim/scenario-table.ts";
import type { Scheme } from "../../sim/scheme.ts";
import { planOf, runScenario } from "../../sim/world.ts";

const ALIQUOT = aliquotScheme() as Scheme;
const DAY_US = 86_400_000_000;

/** Cut short where all that matters happens early. */
const SCENARIOS = [
  scenarioNamed("chaos-safety"),
  scenarioNamed("20-60-10-crash"),
  { ...scenarioNamed("zipf-over-keys"), durationUs: 2_000_000 },
];

describe.each(SCENARIOS)("$name", (scenario) => {
  test("two runs of one seed have equal traces and equal results", async () => {
    const once = await runScenario(scenario, ALIQUOT, 5);
    const again = await runScenario(scenario, ALIQUOT, 5);
    expect(again.traceHash).toBe(once.traceHash);
    expect({ ...again, tookMs: 0 }).toEqual({ ...once, tookMs: 0 });
  });

  test("another seed has another trace", async () => {
    const once = await runScenario(scenario, ALIQUOT, 5);
    const other = await runScenario(scenario, ALIQUOT, 6);
    expect(other.traceHash).not.toBe(once.traceHash);
  });

  test("I8: no decision depends on what any clock shows, only on time that passes", async () => {
    const once = await runScenario(scenario, ALIQUOT, 5);
    const later = await runScenario(scenario, ALIQUOT, 5, {
      clocks: { podsUs: 1_073_741_824, storeUs: 400 * DAY_US },
    });
    expect(later.traceHash).toBe(once.traceHash);
  });
});

test("a plan of faults follows from the seed and can differ between seeds", () => {
  const chaos = scenarioNamed("chaos-safety");
  expect(planOf(chaos, 3)).toEqual(planOf(chaos, 3));
  expect(planOf(chaos, 3)).not.toEqual(planOf(chaos, 4));
});

test("a given plan is played in place of the scenario's own", async () => {
  const chaos = scenarioNamed("chaos-safety");
  const result = await runScenario(chaos, ALIQUOT, 1, {
    faults: [{ kind: "store-empty", atUs: 10_000_000 }],
  });
  const faults = result.events.filter((event) => event.kind === "fault");
  expect(faults.map((event) => event.text)).toEqual(["10s store-empty"]);
});
