/** The machine's monotonic clock: every process here reads the same one. */
import type { InstantUs } from "../src/core/units.ts";

export function monotonicUs(): InstantUs {
  return Number(process.hrtime.bigint() / 1_000n);
}
