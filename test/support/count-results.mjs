/**
 * Turns the JSON report of a test run into the one line that CI ends with.
 *
 * A report can look better than the run was: a file that failed to load has no tests in it, an
 * unhandled error fails the run and no test, a crash leaves no report at all. Each of these is
 * counted as a failure here, so that the line never says less than what went wrong.
 *
 * Usage: node count-results.mjs REPORT TEST_EXIT_CODE FAILED_STEPS
 * Prints "N passed, N failed", and ", N skipped" when tests were skipped. Exits 0 when none failed.
 */
import { readFileSync } from "node:fs";

const [reportPath = "", testExitCode = "1", failedSteps = "0"] = process.argv.slice(2);

function readReport(path) {
  try {
    const report = JSON.parse(readFileSync(path, "utf8"));
    return Array.isArray(report.testResults) ? report : undefined;
  } catch {
    return undefined;
  }
}

function countTests(report) {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const file of report.testResults) {
    const before = counts.failed;
    for (const { status } of file.assertionResults) {
      counts[status === "passed" || status === "failed" ? status : "skipped"] += 1;
    }
    if (file.status === "failed" && counts.failed === before) counts.failed += 1;
  }
  return counts;
}

const report = readReport(reportPath);
const counts = report === undefined ? { passed: 0, failed: 1, skipped: 0 } : countTests(report);
if (testExitCode !== "0" && counts.failed === 0) counts.failed += 1;
if (counts.passed === 0 && counts.failed === 0) counts.failed += 1;
counts.failed += Number(failedSteps);

const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : "";
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed${skipped}\n`);
process.exitCode = counts.failed > 0 ? 1 : 0;
