/** All scenarios, in the order of the report. */
import type { Scenario } from "./scenario.ts";
import { ADVERSARY } from "./scenarios/adversary.ts";
import { EXACT_LIMITS } from "./scenarios/exact-limits.ts";
import { FLEET_CHANGES } from "./scenarios/fleet-changes.ts";
import { LEASED_LIMITS } from "./scenarios/leased-limits.ts";
import { MIXED_MODES } from "./scenarios/mixed-modes.ts";
import { NETWORK_FAULTS } from "./scenarios/network-faults.ts";
import { REQUESTS } from "./scenarios/requests.ts";
import { RETRIES } from "./scenarios/retries.ts";
import { SKEW } from "./scenarios/skew.ts";
import { STEADY } from "./scenarios/steady.ts";
import { STORE_FAULTS } from "./scenarios/store-faults.ts";

export const SCENARIOS: readonly Scenario[] = [
  ...STEADY,
  ...SKEW,
  ...ADVERSARY,
  ...REQUESTS,
  ...RETRIES,
  ...NETWORK_FAULTS,
  ...STORE_FAULTS,
  ...FLEET_CHANGES,
  ...LEASED_LIMITS,
  ...EXACT_LIMITS,
  ...MIXED_MODES,
];

/** @throws {RangeError} When there is none of that name; the message names the closest. */
export function scenarioNamed(name: string): Scenario {
  const found = SCENARIOS.find((scenario) => scenario.name === name);
  if (found !== undefined) return found;
  const alike = SCENARIOS.filter((scenario) => scenario.name.includes(name.slice(0, 5)));
  const names = (alike.length > 0 ? alike : SCENARIOS).map((scenario) => scenario.name);
  throw new RangeError(`there is no scenario "${name}"; there are ${names.join(", ")}`);
}
