/** Rows of the RESP benchmark as they are printed. */
import type { RespCase, RespSide } from "./resp.ts";
import { type Spread, spreadOf } from "./rounds.ts";
import { spreadText } from "./times.ts";

export interface RespRow extends RespCase {
  /** The server's processor time per check, ours by theirs. */
  readonly ratio: Spread;
  readonly ours: RespSide;
  readonly bare: RespSide;
}

export function respLine({ command, store, depth, ratio, ours, bare }: RespRow): string {
  const asked = depth === 1 ? "one at a time" : `pipelines of ${depth}`;
  return (
    `  ${command.padEnd(14)}${store.padEnd(9)} ${asked.padEnd(16)} ${sideText(ours)} against ` +
    `${sideText(bare)} bare, ${spreadText(ratio, 1)} times as much`
  );
}

function sideText({ perSecond, processorUs }: RespSide): string {
  const each = spreadOf(processorUs);
  const perProcessorSecond = Math.round(1e3 / each.median);
  const thousands = Math.round(spreadOf(perSecond).median / 1e3);
  return (
    `${perProcessorSecond} k checks per second of processor time ` +
    `(${spreadText(each, 2)} us a check; ${thousands} k/s)`
  );
}
