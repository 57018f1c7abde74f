/** Rows of the comparison of designs as they are printed. */
import type { AskerTimes } from "./asker.ts";
import { DESIGN_PACE, type Design, type DesignFigures } from "./designs.ts";
import { ratioOf, spreadOf } from "./rounds.ts";

const NAMES: Readonly<Record<Design, string>> = {
  lua: "one Lua call a check, in process",
  flexible: "rate-limiter-flexible over HTTP",
  aliquot: "Aliquot over HTTP",
  batch: "Aliquot over HTTP, batches of 100",
};

/** @param lua - The first row, what the others are measured against. */
export function designLine(row: DesignFigures, lua: DesignFigures): string {
  const speed = spreadOf(row.perSecond);
  const ratio = ratioOf(row.perSecond, lua.perSecond);
  const calls = lua.callsPerCheck / row.callsPerCheck;
  return (
    `  ${NAMES[row.design].padEnd(34)}${(speed.median / 1e3).toFixed(1).padStart(6)} k/s ` +
    `(${ratio.median.toFixed(2)} of Lua, ${ratio.min.toFixed(2)} to ` +
    `${ratio.max.toFixed(2)})  ` +
    `${row.deciderUsPerCheck.toFixed(2)} us a check + ` +
    `Redis ${row.redisUsPerCheck.toFixed(3)} us  ` +
    `${row.callsPerCheck.toFixed(5)} Redis calls a check (1/${calls.toFixed(0)})` +
    (row.times.length > 0 ? `\n${" ".repeat(36)}${timesText(row.times)}` : "")
  );
}

function timesText(times: readonly AskerTimes[]): string {
  const of = (pick: (each: AskerTimes) => number): string => {
    const { median, min, max } = spreadOf(times.map(pick));
    return `${median.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`;
  };
  return (
    `at ${DESIGN_PACE}/s: p50 ${of(({ p50 }) => p50)}, p99 ${of(({ p99 }) => p99)}, ` +
    `longest ${of(({ longest }) => longest)} ms`
  );
}
