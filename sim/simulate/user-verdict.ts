/** The verdict per limit in words: what to expect of it, what was measured, what an outage does. */
import { formatRate } from "../../src/config/rate.ts";
import type { Limit } from "../../src/core/limit.ts";
import type { LimitStanding } from "../../src/core/mode-choice.ts";
import { percent, seconds, shortNumber } from "../report/numbers.ts";
import type { LimitResult, RunResult } from "../run-result.ts";
import { largestFleet } from "./limit-mode.ts";
import { type Outage, outageFigures, podsAt } from "./outage.ts";

/** The run that tells of outages: the scenario's own, or the same with an outage added. */
export interface OutageRun {
  readonly outage: Outage;
  readonly result: RunResult;
  /** The scenario has no outage of its own. */
  readonly isAdded: boolean;
}

/** What a run found out. */
export interface Findings {
  readonly result: RunResult;
  /** How each limit was kept at the end, in the order of the limits. */
  readonly standings: readonly LimitStanding[];
  readonly outageRun: OutageRun | undefined;
  /** The plan of the run is empty. */
  readonly isFaultless: boolean;
}

/** Lines of one limit. */
export function limitLines(limit: Limit, index: number, found: Findings): string[] {
  const { result, standings, outageRun } = found;
  const [measured, choice] = [result.limits[index], standings[index]];
  if (measured === undefined || choice === undefined) return [];
  const rows: [string, string][] = [
    ["mode", `${choice.mode}: ${modeText(choice)}; ${choice.reason}`],
    ["asked", askedText(measured)],
    ["admitted", admittedText(measured)],
    ["bound", boundText(measured, result)],
    ["excess", excessText(measured)],
    ["outage", policyText(limit, outageRun?.result ?? result, outageRun?.outage)],
    ...outageRows(index, outageRun),
    ["verdict", verdictText(limit, index, found)],
    ...adviceRows(measured, choice, result),
  ];
  return [`${limit.name}: ${formatRate(limit)}, burst ${shortNumber(limit.burst)}`, ...table(rows)];
}

/** Lines that are about the fleet and not about one limit. */
export function fleetLines(result: RunResult): string[] {
  const { cost, latency, fleet } = result;
  const [least, most] = [Math.min(...fleet.podsSeries), Math.max(...fleet.podsSeries)];
  const waits =
    latency.held === 0
      ? "no request waits for the store"
      : `${percent(latency.heldPart)} of the requests wait for the store, ` +
        `at most ${shortNumber(latency.maxUs / 1e3)} ms`;
  return [
    "the fleet",
    ...table([
      ["pods", `${least === most ? most : `${least} to ${most}`}`],
      [
        "store",
        `${shortNumber(cost.callsPerSecond)} calls/s, ` +
          `${shortNumber(cost.callsPerAdmit)} per admitted token ` +
          `(keys read and written: ${shortNumber(cost.keyOperationsPerAdmit)})`,
      ],
      ["waiting", waits],
    ]),
  ];
}

function modeText({ mode, intervalUs }: LimitStanding): string {
  switch (mode) {
    case "hybrid":
      return `pods decide and compare numbers every ${Math.round(intervalUs / 1e3)} ms`;
    case "leased":
      return "pods spend what the store has handed out beforehand";
    case "exact":
      return "every check is decided in the store";
    case "sole":
      return "one pod decides alone";
  }
}

const INDENT = 12;
const COLUMNS = 96;

/** Rows of a name and a text that is broken to fit a terminal. */
function table(rows: readonly (readonly [what: string, text: string])[]): string[] {
  return rows.flatMap(([what, text]) => {
    const lines: string[] = [""];
    for (const word of text.split(" ")) {
      const line = lines.at(-1) ?? "";
      if (INDENT + line.length + word.length < COLUMNS) {
        lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
      } else lines.push(word);
    }
    return lines.map((line, i) => `  ${(i === 0 ? what : "").padEnd(INDENT - 2)}${line}`);
  });
}

/**
 * Nothing broke a law of the engine: the excess is within the bound and what the faults explain.
 */
export function holds(limit: Limit, index: number, found: Findings): boolean {
  const { result, isFaultless } = found;
  const measured = result.limits[index];
  // Answers travel, so admissions may bunch by a token even where the store decides.
  const isOver = measured !== undefined && measured.excess > measured.bound + 1;
  if (isFaultless && isOver) return false;
  return !result.violations.some(({ invariant, text }) => {
    return invariant !== "I1" || text.startsWith(`${limit.name} `);
  });
}

function askedText({ offered, keys }: LimitResult): string {
  return `${counted(offered)} under ${keys === 1 ? "one key" : `${keys} keys`}`;
}

function admittedText({ admitted, utilisation }: LimitResult): string {
  return `${counted(admitted)}, ${percent(utilisation)} of what ideal buckets admit`;
}

function boundText({ bound, burst }: LimitResult, result: RunResult): string {
  const pods = largestFleet(result);
  return (
    `per key at most ${counted(bound)} beyond burst + rate x T in any time T, ` +
    `${percent(bound / burst)} of the burst, with ${pods} ${pods === 1 ? "pod" : "pods"}`
  );
}

function counted(tokens: number): string {
  return `${shortNumber(tokens)} ${tokens === 1 ? "token" : "tokens"}`;
}

function excessText({ excess, excessAtUs, bound, keys, excessKey }: LimitResult): string {
  if (excess === 0) return "none";
  const where = keys === 1 ? "" : `, under the key ${JSON.stringify(excessKey)}`;
  const size = `${counted(excess)} at ${seconds(excessAtUs)}${where}`;
  return `${size}: ${excess <= bound ? "within" : "beyond"} the bound`;
}

function policyText(
  { fallback, rate, burst }: Limit,
  result: RunResult,
  outage: Outage | undefined,
): string {
  const { policy, margin } = fallback;
  if (policy === "open") return "while Redis is away everything is admitted, and counted";
  if (policy === "closed") return "while Redis is away every check is answered 503";
  const pods = podsAt(result, outage?.fromUs ?? 0);
  return (
    `while Redis is away all pods together admit at most ${shortNumber(margin * rate)}/s and ` +
    `${shortNumber(margin * burst)} at once, if there are no more of them than ${pods}`
  );
}

function outageRows(index: number, run: OutageRun | undefined): [string, string][] {
  const limit = run?.result.limits[index];
  if (run === undefined || limit === undefined) return [];
  const { admittedPerSecond, idealPerSecond } = outageFigures(limit, run.outage);
  const { fromUs, toUs } = run.outage;
  const how = run.isAdded ? "in a second run, away" : "away";
  const text =
    `${how} from ${seconds(fromUs)} to ${seconds(toUs)}: ` +
    `admits ${shortNumber(admittedPerSecond)}/s, ` +
    `ideal buckets ${shortNumber(idealPerSecond)}/s; excess ${shortNumber(limit.excess)}`;
  return [["", text]];
}

/** A bound of this part of the burst and more is worth a word. */
const LARGE_BOUND = 0.5;

function adviceRows(
  { bound, burst }: LimitResult,
  { mode }: LimitStanding,
  result: RunResult,
): [string, string][] {
  if (mode !== "hybrid" || bound < LARGE_BOUND * burst) return [];
  const pods = largestFleet(result);
  const text =
    `the bound is large against the burst: hybrid mode is coarse for a limit this small over ` +
    `${pods} pods. Exact or leased mode, a larger burst or fewer pods make it smaller`;
  return [["note", text]];
}

function verdictText(limit: Limit, index: number, found: Findings): string {
  const { result } = found;
  const measured = result.limits[index];
  if (!holds(limit, index, found)) {
    const [broken] = result.violations;
    return broken === undefined
      ? "FAILS: the excess is beyond the bound, and no fault explains it"
      : `FAILS: ${broken.invariant}: ${broken.text}`;
  }
  if (measured === undefined || measured.excess <= measured.bound + 1) return "holds";
  return limit.fallback.policy === "open"
    ? "holds, as an open limit can: while Redis is away nothing is denied"
    : "holds: the excess is beyond the bound by less than the faults explain";
}
