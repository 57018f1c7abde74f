/** What a scenario finds wrong with a scheme. */
import { judge } from "../../sim/job.ts";
import { scenarioNamed } from "../../sim/scenario-table.ts";
import type { Scheme } from "../../sim/scheme.ts";
import { runScenario } from "../../sim/world.ts";

/** Broken laws by name, then failed promises. */
export async function findings(scenario: string, scheme: Scheme, seed: number): Promise<string[]> {
  const chosen = scenarioNamed(scenario);
  const result = await runScenario(chosen, scheme, seed);
  const laws = result.violations.map((violation) => violation.invariant);
  const promises = judge(chosen, result)
    .filter((verdict) => !verdict.passed)
    .map((verdict) => verdict.promise);
  return [...new Set([...laws, ...promises])];
}
