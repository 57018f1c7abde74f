/** The live table: redrawn in place on a terminal, one plain line a second anywhere else. */
import { rateOf } from "./excess.ts";
import type { RunOptions } from "./options.ts";
import type { PodSight, Sight } from "./watch.ts";

/** Pods shown one by one; the rest of a larger fleet is one line. */
const ROWS_MAX = 24;
const BAR_COLUMNS = 30;

/** Makes the function that shows a sight. @param write - Takes text for the terminal. */
export function createTable(
  options: RunOptions,
  isTerminal: boolean,
  write: (text: string) => void,
): (sight: Sight) => void {
  if (!isTerminal) return (sight) => write(`${plainLine(sight, options)}\n`);
  let drawn = 0;
  const told: string[] = [];
  return (sight) => {
    for (const note of sight.notes) told.push(`${sight.atSeconds} s ${note}`);
    const lines = [...tableLines(sight, options), `  ${told.slice(-4).join(" · ")}`];
    const up = drawn === 0 ? "" : `\x1b[${drawn}A\x1b[J`;
    drawn = lines.length;
    write(`${up}${lines.join("\n")}\n`);
  };
}

/** A second in one line of at most 100 columns where the fleet is small. */
export function plainLine(sight: Sight, options: RunOptions): string {
  const { atSeconds, offered, admitted, redis, pods, notes } = sight;
  const counted = [...new Set(pods.flatMap(({ livePods }) => livePods ?? []))].sort();
  const sources = [...new Set(pods.map(({ source }) => source))].join("+");
  const rate = rateOf(options.limit);
  const said = notes.length === 0 ? "" : `  <- ${notes.join(", ")}`;
  return (
    `${pad(atSeconds, 3)} s  offered ${pad(offered, 6)}  admitted ${pad(admitted, 6)} of ` +
    `${rate}/s  pods ${pad(pods.length, 3)}  N ${counted.join("|") || "-"}  ` +
    `source ${sources || "-"}  redis ${redis}${said}`
  );
}

function tableLines(sight: Sight, options: RunOptions): string[] {
  const rate = rateOf(options.limit);
  const head = "  pod        offered  admitted     N   share  source";
  const rows = sight.pods.slice(0, ROWS_MAX).map((pod) => row(pod, rate));
  const more = sight.pods.length - ROWS_MAX;
  if (more > 0) rows.push(`  ... and ${more} more`);
  return [
    `  ${sight.atSeconds} s   limit ${options.rate}, burst ${options.burst}   redis ${sight.redis}`,
    head,
    ...rows,
    `  fleet   ${pad(sight.offered, 10)}${pad(sight.admitted, 10)}   ${bar(sight.admitted / rate)}`,
  ];
}

function row(pod: PodSight, rate: number): string {
  const share = pod.share === undefined ? "-" : pod.share.toFixed(3);
  return (
    `  ${`pod-${pod.pod}`.padEnd(8)}${pad(pod.offered, 10)}${pad(pod.admitted, 10)}` +
    `${pad(pod.livePods ?? "-", 6)}${pad(share, 8)}  ${pod.source.padEnd(8)} ` +
    bar(pod.admitted / rate)
  );
}

/** A bar whose full length is the limit; what is beyond it is marked. */
function bar(part: number): string {
  const columns = Math.round(Math.min(part, 1.3) * BAR_COLUMNS);
  const within = "#".repeat(Math.min(columns, BAR_COLUMNS));
  return `${within}${"!".repeat(Math.max(0, columns - BAR_COLUMNS))}`;
}

function pad(value: number | string, columns: number): string {
  return String(value).padStart(columns);
}
