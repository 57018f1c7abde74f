/** The comparison of designs as it is printed. */
import { BASELINES, type DesignName, type Front } from "./design.ts";
import { type DesignFigures, type DesignRow, type DesignTimes, rowOf } from "./designs.ts";
import { ratioOf, spreadOf } from "./rounds.ts";
import { p99Ratio, spreadText, timesText } from "./times.ts";

const FRONTS: Readonly<Record<Front, string>> = {
  ioredis:
    "the application's own client, ioredis on core 0; what it asks (Redis, or a sidecar and an " +
    "idle Redis) on core 1",
  http: "a service over HTTP on core 0; raw load and Redis on core 1",
};

const TITLE_WIDTH = 40;

export function designLines({ rows, times }: DesignFigures): string[] {
  return (["ioredis", "http"] as const).flatMap((front) => [
    `  ${FRONTS[front]}`,
    ...rows
      .filter(({ design }) => design.front === front)
      .map((row) => `    ${row.design.title.padEnd(TITLE_WIDTH)}${speedText(row, rows)}`),
    ...times.filter((each) => each.front === front).flatMap((each) => timesLines(each, rows)),
  ]);
}

function speedText(row: DesignRow, rows: readonly DesignRow[]): string {
  const base = rowOf(rows, BASELINES[row.design.front]);
  const speed = (spreadOf(row.perSecond).median / 1e3).toFixed(1);
  const { clientUs, serverUs, redisUs, callsPerCheck } = row;
  const parts =
    `us a check: client ${clientUs.toFixed(2)} + server ${serverUs.toFixed(2)} + ` +
    `Redis ${redisUs.toFixed(2)}, ${callsPerCheck.toFixed(5)} Redis calls`;
  if (row === base) return `${speed.padStart(7)} k/s; ${parts}`;
  const ratio = spreadText(ratioOf(row.perSecond, base.perSecond));
  const cost = (processorUsOf(base) / processorUsOf(row)).toFixed(2);
  const calls = Math.round(base.callsPerCheck / callsPerCheck);
  return (
    `${speed.padStart(7)} k/s, ${ratio} times Lua's; ${parts} ` +
    `(per processor second ${cost} times Lua's, 1/${calls} of its calls)`
  );
}

/** What the design costs a check: the load of a service is no part of it. */
export function processorUsOf({ design, clientUs, serverUs, redisUs }: DesignRow): number {
  return (design.front === "ioredis" ? clientUs : 0) + serverUs + redisUs;
}

function timesLines(times: DesignTimes, rows: readonly DesignRow[]): string[] {
  const { front, perSecond, part } = times;
  const base = times.rows.find(({ design }) => design.name === BASELINES[front]);
  const pace = part === undefined ? "" : ` (${part * 100} % of the most that Lua did)`;
  return [
    `    ms from when a check was due, ${perSecond} checks a second${pace}`,
    ...times.rows.map(({ design, rounds }) => {
      const against =
        base === undefined || design === base.design
          ? ""
          : `; p99 ${spreadText(p99Ratio(rounds, base.rounds), 3)} of Lua's`;
      return (
        `      ${design.title.padEnd(TITLE_WIDTH - 2)}${timesText(rounds)}${against}` +
        overloadText(design.name, perSecond, rows)
      );
    }),
  ];
}

/** What is offered more than it can do falls behind for as long as the round lasts. */
function overloadText(name: DesignName, perSecond: number, rows: readonly DesignRow[]): string {
  const most = spreadOf(rowOf(rows, name).perSecond).median;
  return most < perSecond ? `; OVERLOADED, it does ${(most / 1e3).toFixed(1)} k/s` : "";
}
