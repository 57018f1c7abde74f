/** The command line of the simulator. */
import { expect, test } from "vitest";
import { parseArguments } from "../../sim/arguments.ts";
import { reproduction } from "../../sim/job.ts";
import { SCENARIOS, scenarioNamed } from "../../sim/scenario-table.ts";
import { schemeNamed } from "../../sim/scheme-table.ts";
import { planOf } from "../../sim/world.ts";

test("seeds are numbers, lists and ranges", () => {
  expect(parseArguments(["--seed", "3,5-7", "--seed", "9"]).seeds).toEqual([3, 5, 6, 7, 9]);
  expect(() => parseArguments(["--seed", "many"])).toThrow("a range such as 1-8");
  expect(() => parseArguments(["--seed", "9-1"])).toThrow("a range such as 1-8");
});

test("an unknown option is refused", () => {
  expect(() => parseArguments(["--sede", "1"])).toThrow("--sede");
});

test("the line that repeats a run leads back to the same run", () => {
  const plan = [
    { kind: "stall", atUs: 1_500_000, forUs: 200_000, pods: [1, 2, 3] },
    { kind: "store-empty", atUs: 2_000_000 },
  ] as const;
  const job = { scenario: "steady-2x", scheme: "independent", seed: 4, twice: false, redis: false };
  const line = reproduction({ ...job, plan });
  expect(line).toBe(
    "npm run sim -- --scenario steady-2x --seed 4 --scheme independent " +
      "--plan '1.5s stall pods=1-3 for=0.2s; 2s store-empty'",
  );
  const words = line.replace("npm run sim -- ", "").match(/'[^']*'|\S+/g) ?? [];
  const back = parseArguments(words.map((word) => word.replaceAll("'", "")));
  expect(back.plan).toEqual(plan);
  expect(back).toMatchObject({ scenarios: ["steady-2x"], schemes: ["independent"], seeds: [4] });
});

test("a misspelt name is answered with those that exist", () => {
  expect(() => scenarioNamed("stead-2x")).toThrow("steady-2x");
  expect(() => schemeNamed("ours")).toThrow("aliquot");
});

test("the table has forty scenarios or more, each with its name, three seeds and a verdict", () => {
  expect(SCENARIOS.length).toBeGreaterThanOrEqual(40);
  expect(new Set(SCENARIOS.map((scenario) => scenario.name)).size).toBe(SCENARIOS.length);
  for (const scenario of SCENARIOS) {
    expect(scenario.seeds.length, scenario.name).toBeGreaterThanOrEqual(3);
    expect(scenario.verdicts.length, scenario.name).toBeGreaterThanOrEqual(1);
  }
});

test("every scenario of liveness ends its faults before its end", () => {
  for (const scenario of SCENARIOS.filter(({ kind }) => kind === "liveness")) {
    for (const fault of planOf(scenario, 1)) {
      const forUs = "forUs" in fault ? fault.forUs : 0;
      expect(fault.atUs + forUs, scenario.name).toBeLessThan(scenario.durationUs);
    }
  }
});
