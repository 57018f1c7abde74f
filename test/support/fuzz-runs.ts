/**
 * How often a fuzz property runs: as often as it says, which suits every commit, or more often if
 * `FUZZ_RUNS` says so: `FUZZ_RUNS=100000 npx vitest run fuzz forward.property codec.property`.
 */

const RUNS_MAX = 10_000_000;
/** For a run with its requests, on a busy machine. */
const RUN_MS = 20;

/** @throws {Error} When `FUZZ_RUNS` is set to something else than a number of runs. */
export function fuzzRuns(usual: number): number {
  const { FUZZ_RUNS = "" } = process.env;
  if (FUZZ_RUNS === "") return usual;
  const runs = Number(FUZZ_RUNS);
  if (!Number.isInteger(runs) || runs < 1 || runs > RUNS_MAX) {
    throw new Error(`FUZZ_RUNS must be a whole number from 1 to ${RUNS_MAX}, got ${FUZZ_RUNS}`);
  }
  return Math.max(usual, runs); // fewer could miss what a property must have seen
}

/** What a test of such properties may take, for `vi.setConfig`. */
export const FUZZ_TIMEOUT_MS: number = Math.max(30_000, fuzzRuns(0) * RUN_MS);
