/** `npm run bench`: what the engine and the HTTP API cost, each against a part of the same run. */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type ParseArgsConfig, parseArgs } from "node:util";
import { BARE_ARGUMENT, runBareServer } from "./bare-server.ts";
import { CLIENT_ARGUMENT, runClient } from "./closed-loop.ts";
import { ENGINE_ARGUMENT, ENGINE_CASES, measureEngine, runEngineRounds } from "./engine.ts";
import { HTTP_CASES, measureHttp } from "./http.ts";
import { machineLine, pinning } from "./machine.ts";
import { ratioOf, spreadOf } from "./rounds.ts";
import { type EngineRow, engineLine, type HttpRow, httpLine } from "./row.ts";

const MAIN = fileURLToPath(import.meta.url);

const HELP = `npm run bench -- [options]

  --only engine|http  one part
  --rounds N          rounds of each row, at least 5 (5)
  --seconds N         length of a round (1)
  --json FILE         writes the figures to a file as well
  --help              prints this
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

const [, , role, argument = ""] = process.argv;
if (role === ENGINE_ARGUMENT) runEngineRounds(argument);
else if (role === CLIENT_ARGUMENT) runClient();
else if (role === BARE_ARGUMENT) runBareServer(argument);
else process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    // The handlers of `exit` end what was started.
    process.once(signal, () => process.kill(process.pid, "SIGKILL"));
  }
  const asked = readArguments(args);
  if (typeof asked === "string") {
    process.stderr.write(asked);
    return asked === HELP ? 0 : 2;
  }
  const machine = machineLine();
  say(`machine: ${machine}`);
  const engine = asked.only === "http" ? [] : await engineRows(asked);
  const http = asked.only === "engine" ? [] : await httpRows(asked);
  if (asked.json !== undefined) {
    writeFileSync(asked.json, `${JSON.stringify({ machine, ...asked, engine, http }, null, 2)}\n`);
  }
  return 0;
}

async function engineRows({ rounds }: Asked): Promise<EngineRow[]> {
  say("\nengine alone, million checks per second (median of the rounds, lowest to highest)");
  const rows: EngineRow[] = [];
  for (const engineCase of ENGINE_CASES) {
    const done = progress(`engine ${rows.length + 1} of ${ENGINE_CASES.length}`);
    const measured = await measureEngine(MAIN, engineCase, rounds, pinning(0));
    done();
    const row = { ...engineCase, spread: spreadOf(measured.perSecond), ...measured };
    rows.push(row);
    say(engineLine(row, rows));
  }
  return rows;
}

async function httpRows({ rounds }: Asked): Promise<HttpRow[]> {
  say("\nHTTP, ratio to a bare node:http server that answers the same bytes (same run)");
  const rows: HttpRow[] = [];
  const setup = { main: MAIN, serverCommand: pinning(0), clientCommand: pinning(1), rounds };
  for (const httpCase of HTTP_CASES) {
    const done = progress(`http ${rows.length + 1} of ${HTTP_CASES.length}`);
    const measured = await measureHttp(httpCase, setup);
    done();
    const { ours, bare } = measured;
    const row = {
      ...httpCase,
      ratio: ratioOf(ours.perSecond, bare.perSecond),
      processorRatio: ours.perProcessorSecond / bare.perProcessorSecond,
      ...measured,
    };
    rows.push(row);
    say(httpLine(row));
  }
  return rows;
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
  if (only !== undefined && only !== "engine" && only !== "http") {
    return `--only must be engine or http, got ${only}\n`;
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

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Tells what is being measured, on a terminal only. @returns Removes it. */
function progress(text: string): () => void {
  if (process.stderr.isTTY !== true) return () => {};
  process.stderr.write(`  ${text} ...`);
  return () => process.stderr.write("\r\x1b[K");
}
