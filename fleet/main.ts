/** `npm run fleet`: a fleet of real sidecars on a real Redis, under load, with a verdict. */
import { claimsOf } from "./claims.ts";
import { runGenerator } from "./generator.ts";
import { GENERATOR_ARGUMENT } from "./load.ts";
import { HELP, parseOptions, UsageError } from "./options.ts";
import { reportJson, reportText } from "./report.ts";
import { Aborted, playRun } from "./run.ts";
import { createTable } from "./table.ts";

const EXIT_FAILURE = 1;
const EXIT_USAGE = 2;
/** The run was played, and a claim does not hold. */
const EXIT_CLAIM = 3;
const EXIT_INTERRUPTED = 130;

if (process.argv[2] === GENERATOR_ARGUMENT) runGenerator();
else process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const write = (text: string): void => {
    process.stdout.write(text);
  };
  const controller = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => controller.abort());
  }
  try {
    const options = parseOptions(args);
    if (options === "help") {
      write(HELP);
      return 0;
    }
    const table = createTable(options, process.stdout.isTTY === true, write);
    const result = await playRun(options, options.json ? () => {} : table, controller.signal);
    write(options.json ? `${reportJson(options, result)}\n` : reportText(options, result));
    return claimsOf(options, result).every(({ holds }) => holds) ? 0 : EXIT_CLAIM;
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(`${error.message}\nSee --help.\n`);
      return EXIT_USAGE;
    }
    if (error instanceof Aborted) return EXIT_INTERRUPTED;
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return EXIT_FAILURE;
  }
}
