/**
 * `npm run bench:guard`: fails when a check, or the reconcile of a key, allocates or executes a
 * tenth more than `engine-baseline.json` says. Counts, not times: they are the same on a busy
 * machine. `--write` makes what was counted the baseline.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ExecutedSource } from "./executed-source.ts";
import type { GuardCase } from "./guard-cases.ts";
import { type Baseline, type Counts, findingsOf } from "./guard-findings.ts";

/** The engine, and what reads and words batches; the other cases do not come there. */
const COUNTED = /\/src\/(core|server)\//;
/** Enough for the compiler to have settled on its best code. */
const WARM_PASSES = 120;
const PASSES = 9;

/** Each V8 lays out objects in its own way. */
const NODE_MAJOR = Number(process.versions.node.split(".")[0]);
const SELF = fileURLToPath(import.meta.url);
const BASELINE = new URL("../../bench/engine-baseline.json", import.meta.url);
/** One thread and no concurrent compiler: the same code is compiled at the same place always. */
const BYTES_FLAGS = [
  "--predictable",
  "--single-threaded",
  "--expose-gc",
  "--max-semi-space-size=64",
];
/** Compiled code would not be counted, nor would the first calls of a function. */
const TOKENS_FLAGS = ["--no-opt", "--no-lazy-feedback-allocation", "--single-threaded"];

const [, , role] = process.argv;
if (role === "--count-bytes") await tell(countBytes);
else if (role === "--count-tokens") await tell(countTokens);
else process.exitCode = main(role === "--write");

function main(isWriting: boolean): number {
  const bytes = counted("--count-bytes", BYTES_FLAGS);
  const tokens = counted("--count-tokens", TOKENS_FLAGS);
  const counts: Counts = Object.fromEntries(
    Object.keys(bytes).map((name) => [
      name,
      { bytes: bytes[name] as number, tokens: tokens[name] as number },
    ]),
  );
  if (isWriting) {
    writeFileSync(BASELINE, `${JSON.stringify({ node: NODE_MAJOR, counts }, null, 2)}\n`);
    return 0;
  }
  const baseline = JSON.parse(readFileSync(BASELINE, "utf8")) as Baseline;
  for (const [name, { bytes: b, tokens: t }] of Object.entries(counts)) {
    const { bytes: wasB = "?", tokens: wasT = "?" } = baseline.counts[name] ?? {};
    say(`${name.padEnd(20)} ${b} bytes (baseline ${wasB}), ${t} tokens (baseline ${wasT})`);
  }
  const findings = findingsOf(counts, baseline.counts);
  for (const finding of findings) say(finding);
  if (baseline.node === NODE_MAJOR) return findings.length > 0 ? 1 : 0;
  say(`the baseline is that of node ${baseline.node}: told, but nothing fails`);
  return 0;
}

/** Counts in a process of its own, with what V8 needs to be repeatable. */
function counted(counting: string, flags: readonly string[]): Record<string, number> {
  const child = spawnSync(process.execPath, [...flags, SELF, counting], { encoding: "utf8" });
  if (child.status !== 0) throw new Error(`counting failed: ${child.stderr}`);
  return JSON.parse(child.stdout) as Record<string, number>;
}

async function tell(count: () => Promise<Record<string, number>>): Promise<void> {
  process.stdout.write(JSON.stringify(await count()));
}

async function countBytes(): Promise<Record<string, number>> {
  const cases = await import("./guard-cases.ts");
  return each(cases.GUARD_CASES, (guardCase) => {
    const course = cases.guardCourse(guardCase);
    for (let pass = 0; pass < WARM_PASSES; pass += 1) {
      course.prepare();
      course.pass();
    }
    let least = Number.POSITIVE_INFINITY;
    for (let pass = 0; pass < PASSES; pass += 1) {
      course.prepare();
      globalThis.gc?.();
      const before = process.memoryUsage().heapUsed;
      course.pass();
      least = Math.min(least, process.memoryUsage().heapUsed - before);
    }
    return least / cases.GUARD_KEYS;
  });
}

async function countTokens(): Promise<Record<string, number>> {
  const executed = new ExecutedSource((url) => COUNTED.test(url));
  // Loaded after the counting has begun.
  const cases = await import("./guard-cases.ts");
  return each(cases.GUARD_CASES, (guardCase) => {
    const course = cases.guardCourse(guardCase);
    course.prepare();
    executed.take();
    course.pass();
    return executed.take() / cases.GUARD_KEYS;
  });
}

function each(
  cases: readonly GuardCase[],
  count: (guardCase: GuardCase) => number,
): Record<string, number> {
  return Object.fromEntries(cases.map((each) => [each.name, Math.round(count(each) * 10) / 10]));
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
