/** The table on the terminal: a row per scenario, worst figures over its seeds, and what failed. */
import { isOurs, type JobDone, reproduction } from "./job.ts";

const COLUMNS: readonly { readonly title: string; readonly width: number }[] = [
  { title: "scenario", width: 30 },
  { title: "scheme", width: 26 },
  { title: "seeds", width: 5 },
  { title: "excess", width: 8 },
  { title: "bound", width: 7 },
  { title: "use", width: 6 },
  { title: "calls/adm", width: 9 },
  { title: "keys/adm", width: 8 },
  { title: "held", width: 6 },
  { title: "verdict", width: 9 },
];

export function heading(): string {
  return COLUMNS.map(({ title, width }, i) => (i < 2 ? title.padEnd(width) : title.padStart(width)))
    .join(" ")
    .trimEnd();
}

/** One line for a scenario under a scheme, from all its seeds. */
export function row(runs: readonly JobDone[]): string {
  const first = runs[0];
  if (first === undefined) return "";
  const failed = runs.filter((run) => !run.passed).length;
  const limits = runs.flatMap((run) => run.result.limits);
  const worst = limits.reduce((a, b) => (b.excess / b.bound > a.excess / a.bound ? b : a));
  const least = Math.min(...limits.map((limit) => limit.utilisation));
  const most = (of: (run: JobDone) => number): number => Math.max(...runs.map(of));
  const cells = [
    first.job.scenario.padEnd(30),
    first.job.scheme.padEnd(26),
    `${runs.length}`,
    worst.excess.toFixed(1),
    worst.bound.toFixed(0),
    least.toFixed(3),
    most((run) => run.result.cost.callsPerAdmit).toFixed(3),
    most((run) => run.result.cost.keyOperationsPerAdmit).toFixed(3),
    `${(100 * most((run) => run.result.latency.heldPart)).toFixed(1)}%`,
    failed === 0 ? "ok" : isOurs(first.job) ? `${failed}/${runs.length} FAIL` : "misses",
  ];
  return cells.map((cell, i) => cell.padStart(COLUMNS[i]?.width ?? 0)).join(" ");
}

/**
 * What failed in one run: promises with their figures, broken invariants, the line that repeats it.
 */
export function failure(run: JobDone): string {
  const lines = run.verdicts
    .filter((verdict) => !verdict.passed)
    .map(
      ({ promise, measured, allowed }) =>
        `    ${promise}: measured ${round(measured)}, allowed ${round(allowed)}`,
    );
  for (const { invariant, atUs, text } of run.result.violations) {
    lines.push(`    ${invariant} at ${(atUs / 1e6).toFixed(6)} s: ${text}`);
  }
  lines.push(`    repeat: ${reproduction(run.job)}`);
  return lines.join("\n");
}

function round(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(5))) : String(value);
}

/** A bar for terminals; nothing elsewhere. */
export class ProgressBar {
  readonly #total: number;
  readonly #write: (text: string) => void;
  #done = 0;

  /** @param write - Undefined when the output is no terminal. */
  constructor(total: number, write: ((text: string) => void) | undefined) {
    this.#total = total;
    this.#write = write ?? (() => {});
  }

  advance(): void {
    this.#done += 1;
    this.draw();
  }

  draw(): void {
    const width = 40;
    const full = Math.round((width * this.#done) / Math.max(1, this.#total));
    const bar = "=".repeat(full) + "-".repeat(width - full);
    this.#write(`\r[${bar}] ${this.#done}/${this.#total} runs `);
  }

  clear(): void {
    this.#write(`\r${" ".repeat(70)}\r`);
  }
}
