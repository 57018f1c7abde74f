/** From arguments to an exit code: finds the verb, shows help, and turns errors into sentences. */
import { didYouMean } from "../config/closest.ts";
import { check } from "./check.ts";
import { health } from "./health.ts";
import { programHelp, verbHelp } from "./help.ts";
import { openapi } from "./openapi.ts";
import { HELP, parseVerb } from "./parse.ts";
import { schema } from "./schema.ts";
import { serve } from "./serve.ts";
import { UnreachableError } from "./sidecar.ts";
import { simulate } from "./simulate.ts";
import { top } from "./top.ts";
import { validate } from "./validate.ts";
import { EXIT, type Io, UsageError, type Verb } from "./verb.ts";
import { version } from "./version.ts";
import { wait } from "./wait.ts";

export const VERBS: readonly Verb[] = [
  serve,
  validate,
  check,
  wait,
  health,
  top,
  simulate,
  schema,
  openapi,
  version,
];

/**
 * Runs one command line.
 *
 * @param args - Without node and script.
 * @returns The exit code. Rejects only for bugs.
 */
export async function runCli(args: readonly string[], io: Io): Promise<number> {
  const [first, ...others] = args;
  if (first === "--help" || first === "-h" || first === HELP) {
    const named = VERBS.find(({ name }) => name === others[0]);
    io.stdout(named === undefined ? programHelp(VERBS) : verbHelp(named));
    return EXIT.ok;
  }
  if (first === "--version") return version.run({ operands: [], flags: new Map() }, io);
  const named = first !== undefined && !first.startsWith("-");
  const verb = named ? VERBS.find(({ name }) => name === first) : serve;
  if (verb === undefined) {
    const guess = didYouMean(
      first ?? "",
      VERBS.map(({ name }) => name),
    );
    io.stderr(`aliquot: unknown verb ${JSON.stringify(first)}${guess}\nTry aliquot --help\n`);
    return EXIT.usage;
  }
  try {
    const given = parseVerb(verb, named ? others : args);
    if (!given.flags.has(HELP)) return await verb.run(given, io);
    io.stdout(verbHelp(verb));
    return EXIT.ok;
  } catch (error) {
    if (error instanceof UsageError) {
      io.stderr(`aliquot ${verb.name}: ${error.message}\nTry aliquot ${verb.name} --help\n`);
      return EXIT.usage;
    }
    if (!(error instanceof UnreachableError)) throw error;
    io.stderr(`aliquot ${verb.name}: ${error.message}\n`);
    return EXIT.unreachable;
  }
}
