/** The last line of CI, for every way in which a test run can end. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const COUNTER = fileURLToPath(new URL("./support/count-results.mjs", import.meta.url));

let scratch = "";
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "aliquot-count-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const file = (status: string, ...tests: string[]): unknown => ({
  status,
  assertionResults: tests.map((each) => ({ status: each })),
});
const report = (...testResults: unknown[]): string => JSON.stringify({ testResults });

interface Ending {
  readonly how: string;
  readonly text: string | undefined;
  readonly testExitCode: number;
  readonly failedSteps?: number;
  readonly line: string;
  readonly exitCode: number;
}

const ENDINGS: readonly Ending[] = [
  {
    how: "all tests passed",
    text: report(file("passed", "passed", "passed"), file("passed", "passed")),
    testExitCode: 0,
    line: "3 passed, 0 failed",
    exitCode: 0,
  },
  {
    how: "a test failed, others were skipped",
    text: report(file("failed", "passed", "failed", "skipped"), file("passed", "todo")),
    testExitCode: 1,
    line: "1 passed, 1 failed, 2 skipped",
    exitCode: 1,
  },
  {
    how: "a file could not be loaded",
    text: report(file("passed", "passed"), file("failed")),
    testExitCode: 1,
    line: "1 passed, 1 failed",
    exitCode: 1,
  },
  {
    how: "an unhandled error failed the run and no test",
    text: report(file("passed", "passed")),
    testExitCode: 1,
    line: "1 passed, 1 failed",
    exitCode: 1,
  },
  {
    how: "the runner crashed before it wrote a report",
    text: undefined,
    testExitCode: 137,
    line: "0 passed, 1 failed",
    exitCode: 1,
  },
  {
    how: "the report was cut off",
    text: '{"testResults":[{"sta',
    testExitCode: 1,
    line: "0 passed, 1 failed",
    exitCode: 1,
  },
  {
    how: "no test was found",
    text: report(),
    testExitCode: 0,
    line: "0 passed, 1 failed",
    exitCode: 1,
  },
  {
    how: "two other steps failed",
    text: report(file("passed", "passed")),
    testExitCode: 0,
    failedSteps: 2,
    line: "1 passed, 2 failed",
    exitCode: 1,
  },
];

describe("the last line of CI", () => {
  it.each(ENDINGS)("is '$line' when $how", (ending) => {
    const path = join(scratch, `${ENDINGS.indexOf(ending)}.json`);
    if (ending.text !== undefined) writeFileSync(path, ending.text);
    const run = spawnSync(
      process.execPath,
      [COUNTER, path, String(ending.testExitCode), String(ending.failedSteps ?? 0)],
      { encoding: "utf8" },
    );
    expect(run.stdout).toBe(`${ending.line}\n`);
    expect(run.status).toBe(ending.exitCode);
  });
});
