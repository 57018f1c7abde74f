/** The benchmark of several workers, row by row, and as it is printed. */
import { spreadOf } from "./rounds.ts";
import {
  type AccuracyRow,
  measureAccuracy,
  measureTable,
  measureWorkers,
  type TableRow,
  WORKERS_CASES,
  type WorkersRow,
} from "./workers.ts";

const ACCURACY_WORKERS = 4;
const ACCURACY_SECONDS = 10;

export interface WorkersFigures {
  readonly spreads: readonly WorkersRow[];
  readonly table: TableRow;
  readonly accuracy: readonly AccuracyRow[];
}

/** @param main - The benchmark's own program. */
export async function workersRows(
  main: string,
  rounds: { readonly count: number; readonly seconds: number },
  say: (line: string) => void,
): Promise<WorkersFigures> {
  say("\nseveral workers, processor time of all their processes, GET over the Unix socket");
  const spreads: WorkersRow[] = [];
  for (const workersCase of WORKERS_CASES) {
    const row = await measureWorkers(main, workersCase, rounds);
    spreads.push(row);
    say(workersLine(row));
  }
  const table = await measureTable(main, rounds.count);
  say(tableLine(table));
  say("\na limit of 1000/s with a burst of 1000 over several workers that are asked for more");
  const accuracy: AccuracyRow[] = [];
  for (const store of ["embedded", "redis"] as const) {
    const row = await measureAccuracy(main, store, ACCURACY_WORKERS, ACCURACY_SECONDS);
    accuracy.push(row);
    say(accuracyLine(row));
  }
  return { spreads, table, accuracy };
}

function workersLine({ workers, spread, answerUs, connectionUs, held }: WorkersRow): string {
  const many = workers === 1 ? "1 worker" : `${workers} workers, ${spread}`;
  return (
    `  ${many.padEnd(24)} ${usText(answerUs)} an answer, ${usText(connectionUs)} a connection` +
    (workers === 1 ? "" : `, held ${held.map((each) => each.join("+")).join(" ")}`)
  );
}

function tableLine({ askUs }: TableRow): string {
  return `  a table in another process: ${usText(askUs)} to ask it for one check`;
}

function accuracyLine(row: AccuracyRow): string {
  const { store, workers, seconds, asked, admitted, ideal, bound } = row;
  const excess = ((admitted / ideal - 1) * 100).toFixed(1);
  return (
    `  ${store.padEnd(9)}${workers} workers: ${admitted} admitted of ${asked} in ` +
    `${seconds.toFixed(2)} s, one bucket ${Math.round(ideal)} (${excess} %), bound +${bound}`
  );
}

function usText(rounds: readonly number[]): string {
  const { median, min, max } = spreadOf(rounds);
  return `${median.toFixed(1)} us (${min.toFixed(1)} to ${max.toFixed(1)})`;
}
