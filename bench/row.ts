/** Rows of the benchmark as they are printed. */
import type { EngineCase } from "./engine.ts";
import type { GrpcMode, GrpcStore, StateTimes } from "./grpc.ts";
import type { CallTimes, GrpcSide } from "./grpc-figures.ts";
import { BATCH_CHECKS, type HttpCase, type HttpTimes, type ServerRounds } from "./http.ts";
import { type Spread, spreadOf } from "./rounds.ts";
import { p99Ratio, spreadText, timesText } from "./times.ts";

export interface EngineRow extends EngineCase {
  readonly spread: Spread;
  readonly deciding: Spread;
  readonly admitted: number;
  readonly tracked: number;
}

const ACCESS: Readonly<Record<EngineCase["access"], string>> = {
  even: "at random       ",
  hot: "9 of 10 on 1 %  ",
  cold: "each seen once  ",
};

export interface HttpRow extends HttpCase {
  /** Answers per second, ours by theirs. */
  readonly ratio: Spread;
  /** The same per second of processor time: what neighbours on the machine take does not count. */
  readonly processorRatio: number;
  readonly ours: ServerRounds;
  readonly bare: ServerRounds;
  readonly times?: HttpTimes;
}

export interface GrpcRow {
  readonly store: GrpcStore;
  /** Answers per second, ours by theirs. */
  readonly ratio: Spread;
  /** Calls per second of processor time, ours by theirs. */
  readonly processorRatio: Spread;
  readonly ours: GrpcSide;
  readonly bare: GrpcSide;
}

export interface GrpcTimesRow extends StateTimes {
  readonly mode: GrpcMode;
}

/** @param rows - The rows so far; the first of a mode is what the others are measured against. */
export function engineLine(row: EngineRow, rows: readonly EngineRow[]): string {
  const { mode, keys, limits, access, spread, deciding, admitted, tracked } = row;
  const base = rows.find((each) => each.mode === mode) ?? row;
  const against = row === base ? "" : `  ${(spread.median / base.spread.median).toFixed(2)} of`;
  const named = row === base ? "" : ` ${base.keys} keys, ${base.limits} limit`;
  const plural = limits > 1 ? "s" : " ";
  return (
    `  ${mode.padEnd(7)}${String(keys).padStart(7)} keys, ${ACCESS[access]}  ` +
    `${limits} limit${plural} a check  ` +
    `${millions(spread.median)} M/s (${millions(spread.min)} to ${millions(spread.max)})` +
    `, deciding alone ${millions(deciding.median)}` +
    `  ${Math.round(admitted * 100)} % admitted, ${tracked} rows tracked${against}${named}`
  );
}

/** One line, and another for times where they were measured. */
export function httpLines(row: HttpRow): string[] {
  const { store, transport, method, ratio, processorRatio, ours, bare, times } = row;
  const speed =
    `  ${method.padEnd(6)}${transport.padEnd(5)}${store.padEnd(9)} ` +
    `ratio ${ratio.median.toFixed(2)} (${ratio.min.toFixed(2)} to ${ratio.max.toFixed(2)}), ` +
    `by processor time ${processorRatio.toFixed(2)}  ` +
    `${serverText(ours)} against ${serverText(bare)} bare${checksText(row)}`;
  if (times === undefined) return [speed];
  const ratio99 = spreadText(p99Ratio(times.ours, times.bare));
  return [
    speed,
    `    ${times.perSecond}/s, half of the lower peak, ms from when due: ${timesText(times.ours)}`,
    `      bare ${timesText(times.bare)}; p99 ${ratio99} of bare`,
  ];
}

export function grpcLine(row: GrpcRow): string {
  const { store, ratio, processorRatio, ours, bare } = row;
  const processor = (side: GrpcSide): string =>
    `${serverText(side)}, ${spreadOf(side.processorUs).median.toFixed(1)} us a call`;
  return (
    `  ${store.padEnd(9)} ratio ${spreadText(ratio)}, ` +
    `by processor time ${spreadText(processorRatio)}  ` +
    `${processor(ours)} against ${processor(bare)} bare`
  );
}

export function grpcTimesLine({ mode, state, ours, bare }: GrpcTimesRow): string {
  return `  ${mode.padEnd(7)} Redis ${state.padEnd(8)} ${callsText(ours)}; bare ${callsText(bare)}`;
}

function callsText({ rounds, overall, failed, denied }: CallTimes): string {
  const { answers, p99 } = overall;
  const notOk = failed + denied === 0 ? "" : `; of ${answers}, ${failed} failed, ${denied} denied`;
  return `p99 of all ${p99.toFixed(2)}, of the rounds ${timesText(rounds)}${notOk}`;
}

function checksText({ method, ours }: HttpRow): string {
  if (method !== "batch") return "";
  const perProcessorSecond = Math.round((ours.perProcessorSecond * BATCH_CHECKS) / 1e3);
  return `; ${perProcessorSecond} k checks per second of processor time`;
}

function serverText({ perSecond, busy }: Pick<ServerRounds, "perSecond" | "busy">): string {
  const thousands = (spreadOf(perSecond).median / 1e3).toFixed(1);
  return `${thousands} k/s (${Math.round(busy * 100)} % busy)`;
}

function millions(value: number): string {
  return (value / 1e6).toFixed(2);
}
