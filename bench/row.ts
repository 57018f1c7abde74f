/** Rows of the benchmark as they are printed. */
import type { EngineCase } from "./engine.ts";
import { BATCH_CHECKS, type HttpCase, type ServerRounds } from "./http.ts";
import { type Spread, spreadOf } from "./rounds.ts";

export interface EngineRow extends EngineCase {
  readonly spread: Spread;
  readonly admitted: number;
}

export interface HttpRow extends HttpCase {
  /** Answers per second, ours by theirs. */
  readonly ratio: Spread;
  /** The same per second of processor time: what neighbours on the machine take does not count. */
  readonly processorRatio: number;
  readonly ours: ServerRounds;
  readonly bare: ServerRounds;
}

/** @param rows - The rows so far; the first of a mode is what the others are measured against. */
export function engineLine(row: EngineRow, rows: readonly EngineRow[]): string {
  const { mode, keys, limits, spread, admitted } = row;
  const base = rows.find((each) => each.mode === mode) ?? row;
  const against = row === base ? "" : `  ${(spread.median / base.spread.median).toFixed(2)} of`;
  const named = row === base ? "" : ` ${base.keys} keys, ${base.limits} limit`;
  const plural = limits > 1 ? "s" : " ";
  return (
    `  ${mode.padEnd(7)}${String(keys).padStart(7)} keys  ${limits} limit${plural} ` +
    `a check  ${millions(spread.median)} M/s (${millions(spread.min)} to ${millions(spread.max)})` +
    `  ${Math.round(admitted * 100)} % admitted${against}${named}`
  );
}

export function httpLine(row: HttpRow): string {
  const { store, transport, method, ratio, processorRatio, ours, bare } = row;
  return (
    `  ${method.padEnd(6)}${transport.padEnd(5)}${store.padEnd(9)} ` +
    `ratio ${ratio.median.toFixed(2)} (${ratio.min.toFixed(2)} to ${ratio.max.toFixed(2)}), ` +
    `by processor time ${processorRatio.toFixed(2)}  ` +
    `${serverText(ours)} against ${serverText(bare)} bare${checksText(row)}`
  );
}

function checksText({ method, ours }: HttpRow): string {
  if (method !== "batch") return "";
  const perProcessorSecond = Math.round((ours.perProcessorSecond * BATCH_CHECKS) / 1e3);
  return `; ${perProcessorSecond} k checks per second of processor time`;
}

function serverText({ perSecond, busy }: ServerRounds): string {
  const thousands = (spreadOf(perSecond).median / 1e3).toFixed(1);
  return `${thousands} k/s (${Math.round(busy * 100)} % busy)`;
}

function millions(value: number): string {
  return (value / 1e6).toFixed(2);
}
