/** The command line of the simulator. */
import { type ParseArgsConfig, parseArgs } from "node:util";
import { type Fault, parseFault } from "./fault-plan.ts";

export interface Arguments {
  /** The fixed subset of the continuous integration. */
  readonly ci: boolean;
  readonly list: boolean;
  readonly twice: boolean;
  readonly shrink: boolean;
  readonly redis: boolean;
  readonly help: boolean;
  /** Names, or parts of names with a star at the end; empty for all. */
  readonly scenarios: readonly string[];
  readonly schemes: readonly string[];
  /** Empty for those of each scenario. */
  readonly seeds: readonly number[];
  readonly plan: readonly Fault[] | undefined;
  readonly out: string | undefined;
}

export const USAGE = `npm run sim -- [options]

  --ci               the fixed subset of the continuous integration
  --scenario NAME    one scenario, several with commas; a star at the end matches the rest
  --seed N           one seed, several with commas, ranges as 1-8; else those of the scenario
  --scheme NAME      aliquot (default) or a baseline, several with commas
  --plan 'a; b'      these faults in place of the scenario's own, as a run prints them
  --twice            run everything twice and compare the traces
  --shrink           make the plan of a failing run smaller
  --redis            run on a real redis-server as well and compare the admissions
  --out DIR          write JSON, CSV and report.html
  --list             list scenarios and schemes
`;

const OPTIONS = {
  ci: { type: "boolean", default: false },
  list: { type: "boolean", default: false },
  twice: { type: "boolean", default: false },
  shrink: { type: "boolean", default: false },
  redis: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
  scenario: { type: "string", multiple: true, default: [] },
  scheme: { type: "string", multiple: true, default: [] },
  seed: { type: "string", multiple: true, default: [] },
  plan: { type: "string" },
  out: { type: "string" },
} as const satisfies ParseArgsConfig["options"];

/** Seeds one command may name. */
const SEEDS_MAX = 10_000;

/** @throws {TypeError | RangeError} When an option is unknown or its value makes no sense. */
export function parseArguments(argv: readonly string[]): Arguments {
  const { values } = parseArgs({ args: [...argv], options: OPTIONS, strict: true });
  const { ci, list, twice, shrink, redis, help, plan, out } = values;
  return {
    ci,
    list,
    twice,
    shrink,
    redis,
    help,
    out,
    scenarios: split(values.scenario),
    schemes: split(values.scheme),
    seeds: split(values.seed).flatMap(parseSeeds),
    plan: plan?.split(";").flatMap((line) => (line.trim() === "" ? [] : [parseFault(line)])),
  };
}

function split(values: readonly string[]): string[] {
  return values.flatMap((value) => value.split(",")).filter((value) => value !== "");
}

function parseSeeds(text: string): number[] {
  const match = /^(\d+)(?:-(\d+))?$/.exec(text);
  const from = Number(match?.[1]);
  const to = Number(match?.[2] ?? match?.[1]);
  if (match === null || to < from || to - from >= SEEDS_MAX) {
    throw new RangeError(`--seed ${text}: expected a whole number or a range such as 1-8`);
  }
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}
