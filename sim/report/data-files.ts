/** The report for programs: all of it as JSON, and a row per limit of each run as CSV. */
import { SPANS_SECONDS } from "../run-result.ts";
import { isPassed, type Report, type ReportedRun } from "./report-data.ts";

/** All of it on one line; Infinity and NaN become null, as JSON has neither. */
export function toJson(report: Report): string {
  return `${JSON.stringify(report, (_, value: unknown) => rounded(value))}\n`;
}

/** Six significant digits: series of many runs would be three times as long in full. */
export function rounded(value: unknown): unknown {
  if (typeof value !== "number" || Number.isInteger(value)) return value;
  return Number.isFinite(value) ? Number(value.toPrecision(6)) : null;
}

const COLUMNS: readonly (readonly [
  name: string,
  of: (run: ReportedRun, limit: ReportedRun["result"]["limits"][number]) => string | number,
])[] = [
  ["scenario", ({ result }) => result.scenario],
  ["scheme", ({ result }) => result.scheme],
  ["seed", ({ result }) => result.seed],
  ["limit", (_, limit) => limit.name],
  ["rate", (_, limit) => limit.rate],
  ["burst", (_, limit) => limit.burst],
  ["keys", (_, limit) => limit.keys],
  ["seconds", ({ result }) => result.durationUs / 1e6],
  ["offered", (_, limit) => limit.offered],
  ["admitted", (_, limit) => limit.admitted],
  ["ideal", (_, limit) => limit.ideal],
  ["utilisation", (_, limit) => limit.utilisation],
  ["excess", (_, limit) => limit.excess],
  ["bound", (_, limit) => limit.bound],
  ...SPANS_SECONDS.map(
    (seconds, i) =>
      [
        `over_admission_${seconds}s`,
        (_, limit) => limit.overAdmission[i] ?? "",
      ] as (typeof COLUMNS)[number],
  ),
  ["debt_mean", (_, limit) => limit.debtMean],
  ["false_denials_per_million", (_, limit) => limit.falseDenialsPerMillion],
  ["false_admits_per_million", (_, limit) => limit.falseAdmitsPerMillion],
  ["jain", ({ result }) => result.fleet.jain],
  ["oscillation", ({ result }) => result.fleet.oscillation],
  ["store_calls", ({ result }) => result.cost.storeCalls],
  ["calls_per_admit", ({ result }) => result.cost.callsPerAdmit],
  ["key_operations_per_admit", ({ result }) => result.cost.keyOperationsPerAdmit],
  ["held_part", ({ result }) => result.latency.heldPart],
  ["latency_p99_us", ({ result }) => result.latency.p99Us],
  ["violations", ({ result }) => result.violations.length],
  ["passed", (run) => (run.judged ? String(isPassed(run)) : "")],
  ["trace", ({ result }) => result.traceHash],
];

export function toCsv(report: Report): string {
  const header = COLUMNS.map(([name]) => name).join(",");
  const rows = report.runs.flatMap((run) =>
    run.result.limits.map((limit) => COLUMNS.map(([, of]) => csvField(of(run, limit))).join(",")),
  );
  return `${[header, ...rows].join("\n")}\n`;
}

function csvField(value: string | number): string {
  const text = String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
