/** `npm run bench`: what the engine, HTTP, gRPC and reconciling cost. */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type ParseArgsConfig, parseArgs } from "node:util";
import { BARE_GRPC_ARGUMENT, runBareGrpcServer } from "./bare-grpc.ts";
import { BARE_RESP_ARGUMENT, runBareRespServer } from "./bare-resp.ts";
import { BARE_ARGUMENT, runBareServer } from "./bare-server.ts";
import { CLIENT_ARGUMENT, runClient } from "./closed-loop.ts";
import { designLine } from "./design-row.ts";
import { ASKER_ARGUMENT, type DesignFigures, measureDesigns, runAsker } from "./designs.ts";
import { ENGINE_ARGUMENT, ENGINE_CASES, measureEngine, runEngineRounds } from "./engine.ts";
import {
  type EngineMemory,
  MEMORY_ARGUMENT,
  MEMORY_CASES,
  measureEngineMemory,
  memoryLine,
  runEngineMemory,
} from "./engine-memory.ts";
import { type FootprintRow, footprintLine, measureFootprint } from "./footprint.ts";
import {
  GRPC_MODES,
  GRPC_STORES,
  measureGrpcCalls,
  measureGrpcTimes,
  PACED_PER_SECOND,
} from "./grpc.ts";
import { GRPC_CLIENT_ARGUMENT, runGrpcClient } from "./grpc-load.ts";
import { HTTP_CASES, type HttpSetup, measureHttp } from "./http.ts";
import { machineLine, pinning } from "./machine.ts";
import { measureReconcile, RECONCILE_CASES } from "./reconcile.ts";
import { type ReconcileRow, reconcileLines } from "./reconcile-row.ts";
import { FLEXIBLE_ARGUMENT, runFlexibleServer } from "./redis-per-check.ts";
import { measureResp, RESP_CASES } from "./resp.ts";
import { RESP_CLIENT_ARGUMENT, runRespClient } from "./resp-load.ts";
import { type RespRow, respLine } from "./resp-row.ts";
import { ratioOf, spreadOf } from "./rounds.ts";
import {
  type EngineRow,
  engineLine,
  type GrpcRow,
  type GrpcTimesRow,
  grpcLine,
  grpcTimesLine,
  type HttpRow,
  httpLine,
} from "./row.ts";
import { runTable, TABLE_ARGUMENT } from "./workers.ts";
import { workersRows } from "./workers-rows.ts";

const MAIN = fileURLToPath(import.meta.url);

const HELP = `npm run bench -- [options]

  --only PART              engine, http, grpc, resp, reconcile, designs, footprint or workers
  --rounds N               rounds of each row, at least 5 (5)
  --seconds N              length of a round (1)
  --json FILE              writes the figures to a file as well
  --help                   prints this
`;

const PARTS: readonly string[] = "engine http grpc resp reconcile designs footprint workers".split(
  " ",
);

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
else if (role === MEMORY_ARGUMENT) runEngineMemory(argument);
else if (role === ASKER_ARGUMENT) runAsker(argument);
else if (role === FLEXIBLE_ARGUMENT) runFlexibleServer(argument);
else if (role === CLIENT_ARGUMENT) runClient();
else if (role === BARE_ARGUMENT) runBareServer(argument);
else if (role === GRPC_CLIENT_ARGUMENT) runGrpcClient();
else if (role === RESP_CLIENT_ARGUMENT) runRespClient();
else if (role === BARE_RESP_ARGUMENT) runBareRespServer(argument);
else if (role === TABLE_ARGUMENT) runTable();
else if (role === BARE_GRPC_ARGUMENT) runBareGrpcServer(argument);
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
  const isAsked = (part: string): boolean => asked.only === undefined || asked.only === part;
  const engine = isAsked("engine") ? await engineRows(asked) : [];
  const memory = isAsked("engine") ? await memoryRows() : [];
  const http = isAsked("http") ? await httpRows(asked) : [];
  const grpc = isAsked("grpc") ? await grpcRows(asked) : [];
  const grpcTimes = isAsked("grpc") ? await grpcTimesRows(asked) : [];
  const resp = isAsked("resp") ? await respRows(asked) : [];
  const reconcile = isAsked("reconcile") ? await reconcileRows() : [];
  const designs = isAsked("designs") ? await designRows(asked) : [];
  const footprint = isAsked("footprint") ? await footprintRows(asked) : [];
  const workers = isAsked("workers") ? await workersRows(MAIN, asked.rounds, say) : {};
  if (asked.json !== undefined) {
    const parts = { engine, memory, http, grpc, grpcTimes, resp, reconcile, designs };
    const figures = { machine, ...asked, ...parts, footprint, workers };
    writeFileSync(asked.json, `${JSON.stringify(figures, null, 2)}\n`);
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
    const spread = spreadOf(measured.perSecond);
    const deciding = spreadOf(measured.decidingPerSecond);
    const row = { ...engineCase, spread, deciding, ...measured };
    rows.push(row);
    say(engineLine(row, rows));
  }
  return rows;
}

async function memoryRows(): Promise<EngineMemory[]> {
  say("\nbytes per tracked key beyond the key itself, heap and typed arrays");
  const rows: EngineMemory[] = [];
  for (const memoryCase of MEMORY_CASES) {
    const done = progress(`memory of ${memoryCase.keys} keys`);
    rows.push(await measureEngineMemory(MAIN, memoryCase));
    done();
    say(memoryLine(rows.at(-1) as EngineMemory));
  }
  return rows;
}

async function httpRows({ rounds }: Asked): Promise<HttpRow[]> {
  say("\nHTTP, ratio to a bare node:http server that answers the same bytes (same run)");
  const rows: HttpRow[] = [];
  const setup = pinnedSetup(rounds);
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

async function grpcRows({ rounds }: Asked): Promise<GrpcRow[]> {
  say("\nShouldRateLimit, ratio to a bare grpc-js server that answers the same bytes (same run)");
  const rows: GrpcRow[] = [];
  for (const store of GRPC_STORES) {
    const done = progress(`grpc ${rows.length + 1} of ${GRPC_STORES.length}`);
    const measured = await measureGrpcCalls(store, pinnedSetup(rounds));
    done();
    const { ours, bare } = measured;
    const row = {
      store,
      ratio: ratioOf(ours.perSecond, bare.perSecond),
      processorRatio: ratioOf(bare.processorUs, ours.processorUs),
      ...measured,
    };
    rows.push(row);
    say(grpcLine(row));
  }
  return rows;
}

async function grpcTimesRows({ rounds }: Asked): Promise<GrpcTimesRow[]> {
  say(`\nShouldRateLimit at ${PACED_PER_SECOND} calls a second, ms from when a call was due`);
  const rows: GrpcTimesRow[] = [];
  for (const mode of GRPC_MODES) {
    const done = progress(`${mode} limits`);
    const states = await measureGrpcTimes(mode, pinnedSetup(rounds));
    done();
    for (const measured of states) {
      const row = { mode, ...measured };
      rows.push(row);
      say(grpcTimesLine(row));
    }
  }
  return rows;
}

async function reconcileRows(): Promise<ReconcileRow[]> {
  say("\nreconciling many keys, real processes on all cores of this machine");
  const rows: ReconcileRow[] = [];
  for (const reconcileCase of RECONCILE_CASES) {
    const done = progress(`${reconcileCase.keys} keys`);
    const figures = await measureReconcile(reconcileCase);
    done();
    const row = { ...reconcileCase, ...figures };
    rows.push(row);
    for (const line of reconcileLines(row)) say(line);
  }
  return rows;
}

async function respRows({ rounds }: Asked): Promise<RespRow[]> {
  say("\nRESP on a Unix socket, beside a bare server that answers constants (same run)");
  const rows: RespRow[] = [];
  for (const respCase of RESP_CASES) {
    const done = progress(`resp ${rows.length + 1} of ${RESP_CASES.length}`);
    const measured = await measureResp(respCase, pinnedSetup(rounds));
    done();
    const { ours, bare } = measured;
    const row = { ...respCase, ratio: ratioOf(ours.processorUs, bare.processorUs), ...measured };
    rows.push(row);
    say(respLine(row));
  }
  return rows;
}

async function designRows({ rounds }: Asked): Promise<DesignFigures[]> {
  say("\ndesigns, 10 hot keys, 64 checks at once, the same Redis (same run)");
  const done = progress("all designs in turn");
  const rows = await measureDesigns(pinnedSetup(rounds));
  done();
  for (const row of rows) say(designLine(row, rows[0] as DesignFigures));
  return rows;
}

async function footprintRows({ rounds }: Asked): Promise<FootprintRow[]> {
  say("\nfootprint: starts, and memory while idle, next to a bare node:http server (same run)");
  const done = progress("starting each a few times");
  const rows = await measureFootprint(rounds.count);
  done();
  for (const row of rows) say(footprintLine(row, rows));
  return rows;
}

function pinnedSetup(rounds: Asked["rounds"]): HttpSetup {
  return { main: MAIN, serverCommand: pinning(0), clientCommand: pinning(1), rounds };
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

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Tells what is being measured, on a terminal only. @returns Removes it. */
function progress(text: string): () => void {
  if (process.stderr.isTTY !== true) return () => {};
  process.stderr.write(`  ${text} ...`);
  return () => process.stderr.write("\r\x1b[K");
}
