/** The groups of the benchmark, row by row. */
import { AT_ONCE, KEYS } from "./design.ts";
import { designLines } from "./design-row.ts";
import { type DesignFigures, measureDesigns } from "./designs.ts";
import { ENGINE_CASES, measureEngine } from "./engine.ts";
import {
  type EngineMemory,
  MEMORY_CASES,
  measureEngineMemory,
  memoryLine,
} from "./engine-memory.ts";
import { type FootprintRow, footprintLine, measureFootprint } from "./footprint.ts";
import {
  GRPC_MODES,
  GRPC_STORES,
  measureGrpcCalls,
  measureGrpcTimes,
  PACED_PER_SECOND,
} from "./grpc.ts";
import { HTTP_CASES, measureHttp } from "./http.ts";
import { measureReconcile, RECONCILE_CASES } from "./reconcile.ts";
import { type ReconcileRow, reconcileLines } from "./reconcile-row.ts";
import { measureResp, RESP_CASES } from "./resp.ts";
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
  httpLines,
} from "./row.ts";
import { type BenchSetup, pinnedSetup } from "./setup.ts";
import { workersRows } from "./workers-rows.ts";

type Group = (setup: BenchSetup) => Promise<object>;

/** In the order of the report; the names are those of the JSON file too. */
const GROUPS: Readonly<Record<string, Readonly<Record<string, Group>>>> = {
  engine: { engine: engineRows },
  memory: { memory: memoryRows },
  http: { http: httpRows },
  grpc: { grpc: grpcRows, grpcTimes: grpcTimesRows },
  resp: { resp: respRows },
  reconcile: { reconcile: reconcileRows },
  designs: { designs: designRows },
  footprint: { footprint: footprintRows },
  workers: { workers: ({ main, rounds }) => workersRows(main, rounds, say) },
};

/** What can be asked for by itself. */
export const PARTS: readonly string[] = Object.keys(GROUPS);

/**
 * Measures and prints.
 *
 * @param main - The benchmark's own program.
 * @returns The figures of each group that was asked for, by name.
 */
export async function measureGroups(
  main: string,
  asked: { readonly only: string | undefined; readonly rounds: BenchSetup["rounds"] },
): Promise<Record<string, object>> {
  const setup = pinnedSetup(main, asked.rounds);
  const figures: Record<string, object> = {};
  for (const [part, groups] of Object.entries(GROUPS)) {
    if (asked.only !== undefined && asked.only !== part) continue;
    for (const [name, measure] of Object.entries(groups)) figures[name] = await measure(setup);
  }
  return figures;
}

async function engineRows(setup: BenchSetup): Promise<EngineRow[]> {
  say("\nengine alone, million checks per second (median of the rounds, lowest to highest)");
  const rows: EngineRow[] = [];
  for (const engineCase of ENGINE_CASES) {
    const done = progress(`engine ${rows.length + 1} of ${ENGINE_CASES.length}`);
    const measured = await measureEngine(engineCase, setup);
    done();
    const spread = spreadOf(measured.perSecond);
    const deciding = spreadOf(measured.decidingPerSecond);
    const row = { ...engineCase, spread, deciding, ...measured };
    rows.push(row);
    say(engineLine(row, rows));
  }
  return rows;
}

async function memoryRows({ main }: BenchSetup): Promise<EngineMemory[]> {
  say("\nbytes per tracked key beyond the key itself, heap and typed arrays");
  const rows: EngineMemory[] = [];
  for (const memoryCase of MEMORY_CASES) {
    const done = progress(`memory of ${memoryCase.keys} keys`);
    rows.push(await measureEngineMemory(main, memoryCase));
    done();
    say(memoryLine(rows.at(-1) as EngineMemory));
  }
  return rows;
}

async function httpRows(setup: BenchSetup): Promise<HttpRow[]> {
  say("\nHTTP, ratio to a bare node:http server that answers the same bytes (same run)");
  const rows: HttpRow[] = [];
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
    for (const line of httpLines(row)) say(line);
  }
  return rows;
}

async function grpcRows(setup: BenchSetup): Promise<GrpcRow[]> {
  say("\nShouldRateLimit, ratio to a bare grpc-js server that answers the same bytes (same run)");
  const rows: GrpcRow[] = [];
  for (const store of GRPC_STORES) {
    const done = progress(`grpc ${rows.length + 1} of ${GRPC_STORES.length}`);
    const measured = await measureGrpcCalls(store, setup);
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

async function grpcTimesRows(setup: BenchSetup): Promise<GrpcTimesRow[]> {
  say(`\nShouldRateLimit at ${PACED_PER_SECOND} calls a second, ms from when a call was due`);
  const rows: GrpcTimesRow[] = [];
  for (const mode of GRPC_MODES) {
    const done = progress(`${mode} limits`);
    const states = await measureGrpcTimes(mode, setup);
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

async function respRows(setup: BenchSetup): Promise<RespRow[]> {
  say("\nRESP on a Unix socket, beside a bare server that answers constants (same run)");
  const rows: RespRow[] = [];
  for (const respCase of RESP_CASES) {
    const done = progress(`resp ${rows.length + 1} of ${RESP_CASES.length}`);
    const measured = await measureResp(respCase, setup);
    done();
    const { ours, bare } = measured;
    const row = { ...respCase, ratio: ratioOf(ours.processorUs, bare.processorUs), ...measured };
    rows.push(row);
    say(respLine(row));
  }
  return rows;
}

async function designRows(setup: BenchSetup): Promise<DesignFigures> {
  say(
    `\ndesigns, ${KEYS.length} hot keys, ${AT_ONCE} checks at once, the same Redis (same run); ` +
      "baseline: one Lua call a check, asked in the same way; aims: 5 times the checks per " +
      "second, a third of the p99, a fiftieth of the Redis calls",
  );
  const done = progress("all designs in turn");
  const figures = await measureDesigns(setup);
  done();
  for (const line of designLines(figures)) say(line);
  return figures;
}

async function footprintRows({ rounds }: BenchSetup): Promise<FootprintRow[]> {
  say("\nfootprint: starts, and memory while idle, next to a bare node:http server (same run)");
  const done = progress("starting each a few times");
  const rows = await measureFootprint(rounds.count);
  done();
  for (const row of rows) say(footprintLine(row, rows));
  return rows;
}

export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Tells what is being measured, on a terminal only. @returns Removes it. */
function progress(text: string): () => void {
  if (process.stderr.isTTY !== true) return () => {};
  process.stderr.write(`  ${text} ...`);
  return () => process.stderr.write("\r\x1b[K");
}
