/** The real scripts on a real server admit exactly what the embedded store admits. */
import { expect, test } from "vitest";
import { aliquotScheme } from "../../sim/aliquot-scheme.ts";
import type { Scenario } from "../../sim/scenario.ts";
import { scenarioNamed } from "../../sim/scenario-table.ts";
import type { Scheme } from "../../sim/scheme.ts";
import { ON_REDIS } from "../../sim/scheme-table.ts";
import { runScenario } from "../../sim/world.ts";

const ALIQUOT = aliquotScheme() as Scheme;

test.each([
  "steady-2x",
  "duplicates-and-reordering",
  "store-emptied",
  "failover-0.2s",
  "20-60-10-crash",
  "two-of-four-limits",
  "rate-halved",
  "store-clock-10s",
  "leased-steady-0.5x",
  "leased-store-hangs-10s",
  "leased-duplicates-and-reordering",
  "exact-small-10-even",
  "exact-costs-1-5-20",
  "half-hybrid-half-leased",
  "roll-leased-to-exact",
  "three-modes-exact-tight",
  "auto-2-20-6",
])("%s gives the same trace on Redis", async (name) => {
  const scenario = scenarioNamed(name);
  // Long enough for what the scenario does at 10 s, short enough for a test.
  const short: Scenario = { ...scenario, durationUs: 14_000_000 };
  const embedded = await runScenario(short, ALIQUOT, 11);
  const real = await runScenario(short, ON_REDIS, 11);
  expect(real.limits.map((limit) => limit.admitted)).toEqual(
    embedded.limits.map((limit) => limit.admitted),
  );
  expect(real.traceHash).toBe(embedded.traceHash);
  expect(embedded.fleet.requestsAdmitted).toBeGreaterThan(100);
});
