/** The machine's monotonic clock: every process here reads the same one. */
import type { InstantUs } from "../src/core/units.ts";

export function monotonicUs(): InstantUs {
  return Number(process.hrtime.bigint() / 1_000n);
}

export function sleepUntil(instantUs: InstantUs): Promise<void> {
  const ms = Math.max(0, (instantUs - monotonicUs()) / 1_000);
  return new Promise((resolve) => setTimeout(resolve, ms));
}
