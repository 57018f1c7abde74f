/** `npm run bench`: what the engine, HTTP, gRPC and reconciling cost. */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type ParseArgsConfig, parseArgs } from "node:util";
import { measureGroups, PARTS, say } from "./groups.ts";
import { machineLine } from "./machine.ts";
import { ROLES } from "./roles.ts";

const MAIN = fileURLToPath(import.meta.url);

const HELP = `npm run bench -- [options]

  --only PART              engine, memory, http, grpc, resp, reconcile, designs, footprint or
                           workers
  --rounds N               rounds of each row, at least 5 (5)
  --seconds N              length of a round (1)
  --json FILE              writes the figures to a file as well
  --help                   prints this
`;

const FLAGS = {
  only: { type: "string" },
  rounds: { type: "string", default: "5" },
  seconds: { type: "string", default: "1" },
  json: { type: "string" },
  help: { type: "boolean" },
} as const satisfies ParseArgsConfig["options"];

interface Asked {
  readonly only: string | undefined;
  readonly rounds: { readonly count: number; readonly seconds: number };
  readonly json: string | undefined;
}

const [, , role = "", argument = ""] = process.argv;
const perform = ROLES.get(role);
if (perform !== undefined) perform(argument);
else process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => {
      // These handlers end what was started; a signal alone would not call them.
      process.emit("exit", 1);
      process.kill(process.pid, "SIGKILL");
    });
  }
  const asked = readArguments(args);
  if (typeof asked === "string") {
    process.stderr.write(asked);
    return asked === HELP ? 0 : 2;
  }
  const machine = machineLine();
  say(`machine: ${machine}`);
  const figures = await measureGroups(MAIN, asked);
  if (asked.json !== undefined) {
    const text = JSON.stringify({ machine, ...asked, ...figures }, null, 2);
    writeFileSync(asked.json, `${text}\n`);
  }
  return 0;
}

function readArguments(args: readonly string[]): Asked | string {
  let values: ReturnType<typeof readFlags>;
  try {
    values = readFlags(args);
  } catch (error) {
    return `${error instanceof Error ? error.message : String(error)}\nSee --help.\n`;
  }
  if (values.help === true) return HELP;
  const { only, json } = values;
  const [count, seconds] = [Number(values.rounds), Number(values.seconds)];
  if (only !== undefined && !PARTS.includes(only)) {
    return `--only must be ${PARTS.join(", ")}, got ${only}\n`;
  }
  if (!Number.isInteger(count) || count < 5 || count > 1_000) {
    return `--rounds must be a whole number from 5 to 1000, got ${values.rounds}\n`;
  }
  if (!(seconds > 0 && seconds <= 600)) {
    return `--seconds must be above 0 and at most 600, got ${values.seconds}\n`;
  }
  return { only, json, rounds: { count, seconds } };
}

function readFlags(args: readonly string[]) {
  return parseArgs({ args: [...args], options: FLAGS, strict: true }).values;
}
