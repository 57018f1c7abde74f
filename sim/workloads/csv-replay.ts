/**
 * Replays a recorded trace: CSV with the columns `time,pod,limit,key,cost`, one request per line.
 *
 * `time` is in seconds from the start with up to six digits and never goes back; `pod` is a number,
 * or `any` for one that the balancer chooses; `limit` is a name; `cost` is optional and 1 when the
 * column is missing. Fields may be quoted, `""` inside quotes is a quote.
 */
import type { Limit } from "../../src/core/limit.ts";
import type { InstantUs } from "../../src/core/units.ts";
import { ANY_POD, type Arrival, type Workload } from "../workload.ts";

/** Longest trace that is read. */
export const TRACE_LINES_MAX = 5_000_000;
const POD_MAX = 9_999;
const COST_MAX = 1_000_000_000;
/** Further problems of one file are only counted. */
const PROBLEMS_MAX = 10;

const COLUMNS = ["time", "pod", "limit", "key", "cost"] as const;
type Column = (typeof COLUMNS)[number];

export type ParsedTrace =
  | { readonly arrivals: readonly Arrival[]; readonly problems?: undefined }
  | { readonly arrivals?: undefined; readonly problems: readonly string[] };

/** A trace that was read, as a workload. */
export function csvReplay(name: string, arrivals: readonly Arrival[]): Workload {
  return {
    summary: `${arrivals.length} requests of ${name}`,
    start() {
      let sent = 0;
      return {
        next() {
          sent += 1;
          return arrivals[sent - 1];
        },
      };
    },
  };
}

/**
 * @param name - The file, as problems name it: `name:line: what is wrong`.
 * @param limits - In the order of `SimCheck.limit`.
 */
export function parseTrace(name: string, text: string, limits: readonly Limit[]): ParsedTrace {
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  if (lines.length > TRACE_LINES_MAX) {
    return { problems: [`${name}: has more than ${TRACE_LINES_MAX} lines; cut it`] };
  }
  const header = splitFields(lines[0] ?? "") ?? [];
  const places = placesOf(header.map((field) => field.trim().toLowerCase()));
  if (typeof places === "string") return { problems: [`${name}:1: ${places}`] };
  const arrivals: Arrival[] = [];
  const problems: string[] = [];
  let lastUs = 0;
  for (let i = 1; i < lines.length; i += 1) {
    const line = lines[i] as string;
    if (line.trim() === "" || line.startsWith("#")) continue;
    const read = readArrival(line, places, header.length, limits, lastUs);
    if (typeof read === "string") problems.push(`${name}:${i + 1}: ${read}`);
    else {
      arrivals.push(read);
      lastUs = read.atUs;
    }
  }
  if (problems.length > PROBLEMS_MAX) {
    const more = problems.length - PROBLEMS_MAX;
    return { problems: [...problems.slice(0, PROBLEMS_MAX), `${name}: and ${more} more`] };
  }
  if (problems.length > 0) return { problems };
  if (arrivals.length === 0) return { problems: [`${name}: holds no request`] };
  return { arrivals };
}

type Places = Readonly<Record<Column, number>>;

function placesOf(header: readonly string[]): Places | string {
  const wanted = `the first line must name the columns ${COLUMNS.join(",")} (cost may be left out)`;
  const unknown = header.find((name) => !(COLUMNS as readonly string[]).includes(name));
  if (unknown !== undefined) return `${wanted}; got "${unknown}"`;
  const place = (column: Column): number => header.indexOf(column);
  const missing = COLUMNS.find((column) => column !== "cost" && place(column) < 0);
  if (missing !== undefined) return `${wanted}; there is no ${missing}`;
  return {
    time: place("time"),
    pod: place("pod"),
    limit: place("limit"),
    key: place("key"),
    cost: place("cost"),
  };
}

function readArrival(
  line: string,
  places: Places,
  columns: number,
  limits: readonly Limit[],
  lastUs: InstantUs,
): Arrival | string {
  const fields = splitFields(line);
  if (fields === undefined) return "a quote is not closed";
  if (fields.length !== columns) return `has ${fields.length} fields, expected ${columns}`;
  const field = (column: Column): string => (fields[places[column]] ?? "").trim();
  const time = field("time");
  if (!/^\d{1,9}(\.\d{1,6})?$/.test(time)) {
    return `time must be seconds such as 0.25; got "${time}"`;
  }
  const atUs = Math.round(Number(time) * 1e6);
  if (atUs < lastUs) return `time ${time} is before the line above it (${lastUs / 1e6})`;
  const podText = field("pod");
  const pod = podText === "any" ? ANY_POD : Number(podText === "" ? Number.NaN : podText);
  if (!Number.isInteger(pod) || pod < ANY_POD || pod > POD_MAX || podText.startsWith("-")) {
    return `pod must be a number from 0 to ${POD_MAX}, or any; got "${podText}"`;
  }
  const limitName = field("limit");
  const limit = limits.findIndex(({ name }) => name === limitName);
  if (limit < 0) {
    const names = limits.map(({ name }) => name).join(", ");
    return `there is no limit "${limitName}"; there are ${names}`;
  }
  const key = fields[places.key] ?? "";
  if (key === "" || Buffer.byteLength(key) > 256) return "key must be 1 to 256 bytes long";
  const costText = places.cost < 0 ? "1" : field("cost");
  if (!/^\d{1,10}$/.test(costText) || Number(costText) > COST_MAX) {
    return `cost must be a whole number from 0 to ${COST_MAX}; got "${costText}"`;
  }
  return { atUs, pod, client: 0, checks: [{ limit, key, cost: Number(costText) }] };
}

/** The fields of one line; undefined when a quote stays open. */
function splitFields(line: string): string[] | undefined {
  if (!line.includes('"')) return line.split(",");
  const fields: string[] = [];
  let [field, quoted] = ["", false];
  for (let i = 0; i < line.length; i += 1) {
    const character = line[i] as string;
    if (quoted && character === '"' && line[i + 1] === '"') {
      field += '"';
      i += 1;
    } else if (character === '"') quoted = !quoted;
    else if (character === "," && !quoted) {
      fields.push(field);
      field = "";
    } else field += character;
  }
  if (quoted) return undefined;
  return [...fields, field];
}
