/**
 * Plans of faults: data that can be printed one line each, read back, and made smaller.
 *
 * A line is `<at>s <kind> <name>=<value> ...`, e.g. `10.000s partition pods=0-5 for=5.000s`.
 * Times are seconds with up to six digits, pods are numbers and ranges joined by commas.
 */
import type { DurationUs, InstantUs } from "../src/core/units.ts";

interface At {
  readonly atUs: InstantUs;
}
interface Lasting extends At {
  readonly forUs: DurationUs;
}
/** Pods by number; those that do not serve at that instant are passed over. */
interface OfPods {
  readonly pods: readonly number[];
}

/** Which way a cut or a held link is closed. */
export type Way = "both" | "to-store" | "from-store";

export type Fault =
  /** New pods, numbered on from the highest so far. */
  | (At & { readonly kind: "join"; readonly count: number })
  /** Graceful stop. */
  | (At & OfPods & { readonly kind: "leave" })
  | (At & OfPods & { readonly kind: "crash" })
  /** Crash, and a new life of the same pod number after `forUs`. */
  | (Lasting & OfPods & { readonly kind: "bounce" })
  /** The event loop stands still; messages and requests queue up. */
  | (Lasting & OfPods & { readonly kind: "stall" })
  /** The machine stands still: as a stall, and its clock stands still as well. */
  | (Lasting & OfPods & { readonly kind: "pause" })
  /** From here on the pod's clock runs at `rate` times true time. */
  | (At & OfPods & { readonly kind: "drift"; readonly rate: number })
  /** The pod's wall clock steps; nothing may depend on it. */
  | (At & OfPods & { readonly kind: "pod-clock"; readonly byUs: number })
  /** Messages are lost. */
  | (Lasting & OfPods & { readonly kind: "partition"; readonly way: Way })
  /** Messages wait until the end and arrive then. */
  | (Lasting & OfPods & { readonly kind: "hold"; readonly way: Way })
  /** A worse link, both ways. */
  | (Lasting &
      OfPods & {
        readonly kind: "link";
        readonly loss: number;
        readonly duplicate: number;
        /** Part of the messages that take `lateUs` longer, so that others overtake them. */
        readonly reorder: number;
        readonly lateUs: DurationUs;
        readonly delayUs: DurationUs;
      })
  /** Refuses connections, or takes requests and never answers. */
  | (Lasting & { readonly kind: "store-down"; readonly how: "refuse" | "hang" })
  /** Down for `downUs` of every `everyUs`. */
  | (Lasting & {
      readonly kind: "store-flap";
      readonly everyUs: DurationUs;
      readonly downUs: DurationUs;
    })
  /** Every call takes longer. */
  | (Lasting & { readonly kind: "store-slow"; readonly byUs: DurationUs })
  /** The state of `lagUs` ago comes back; what was acknowledged since is gone. */
  | (At & { readonly kind: "store-failover"; readonly lagUs: DurationUs })
  /** All state is gone. */
  | (At & { readonly kind: "store-empty" })
  | (At & { readonly kind: "store-clock"; readonly byUs: number })
  /** `Scenario.configs[set]` comes into force, pod after pod over `overUs`. */
  | (At & { readonly kind: "config"; readonly set: number; readonly overUs: DurationUs });

export type FaultKind = Fault["kind"];

/** Values of a fault that are times, and so are written as seconds. */
const TIMES: ReadonlySet<string> = new Set([
  "forUs",
  "lateUs",
  "delayUs",
  "everyUs",
  "downUs",
  "byUs",
  "lagUs",
  "overUs",
]);

/** Fields of each kind beside `atUs`, for reading and writing. */
const FIELDS: Readonly<Record<FaultKind, readonly string[]>> = {
  join: ["count"],
  leave: ["pods"],
  crash: ["pods"],
  bounce: ["pods", "forUs"],
  stall: ["pods", "forUs"],
  pause: ["pods", "forUs"],
  drift: ["pods", "rate"],
  "pod-clock": ["pods", "byUs"],
  partition: ["pods", "forUs", "way"],
  hold: ["pods", "forUs", "way"],
  link: ["pods", "forUs", "loss", "duplicate", "reorder", "lateUs", "delayUs"],
  "store-down": ["forUs", "how"],
  "store-flap": ["forUs", "everyUs", "downUs"],
  "store-slow": ["forUs", "byUs"],
  "store-failover": ["lagUs"],
  "store-empty": [],
  "store-clock": ["byUs"],
  config: ["set", "overUs"],
};

/** Values that are words, with what they may be. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  way: ["both", "to-store", "from-store"],
  how: ["refuse", "hang"],
};

/** One line that `parseFault` reads back as the same fault. */
export function faultToLine(fault: Fault): string {
  const values = fault as unknown as Readonly<Record<string, unknown>>;
  const parts = FIELDS[fault.kind].map((field) => {
    const value = values[field];
    if (field === "pods") return `pods=${rangesOf(value as readonly number[])}`;
    if (TIMES.has(field)) return `${field.slice(0, -2)}=${secondsOf(value as number)}`;
    return `${field}=${value}`;
  });
  return [secondsOf(fault.atUs), fault.kind, ...parts].join(" ");
}

/** @throws {RangeError} When the line is no fault; the message names what would be accepted. */
export function parseFault(line: string): Fault {
  const [at, kind, ...rest] = line.trim().split(/\s+/);
  if (at === undefined || kind === undefined) {
    throw new RangeError(`"${line}" is no fault; expected "10s store-empty" or the like`);
  }
  const fields = Object.hasOwn(FIELDS, kind) ? FIELDS[kind as FaultKind] : undefined;
  if (fields === undefined) {
    const kinds = Object.keys(FIELDS).join(", ");
    throw new RangeError(`"${kind}" is no kind of fault; there are ${kinds}`);
  }
  const given = new Map(rest.map((part) => splitOnce(part)));
  const fault: Record<string, unknown> = { kind, atUs: parseSeconds("the instant", at) };
  for (const field of fields) {
    const name = TIMES.has(field) ? field.slice(0, -2) : field;
    const value = given.get(name);
    if (value === undefined) throw new RangeError(`"${line}" lacks ${name}=`);
    fault[field] = parseValue(field, value);
  }
  return fault as unknown as Fault;
}

function parseValue(field: string, value: string): unknown {
  if (field === "pods") return parseRanges(value);
  if (TIMES.has(field)) return parseSeconds(field.slice(0, -2), value);
  const words = WORDS[field];
  if (words === undefined) {
    const number = Number(value);
    if (value === "" || !Number.isFinite(number)) {
      throw new RangeError(`${field}=${value} is no number`);
    }
    return number;
  }
  if (!words.includes(value)) {
    throw new RangeError(`${field}=${value}: expected one of ${words.join(", ")}`);
  }
  return value;
}

function splitOnce(part: string): [string, string] {
  const at = part.indexOf("=");
  return at < 0 ? [part, ""] : [part.slice(0, at), part.slice(at + 1)];
}

function secondsOf(us: number): string {
  return `${Number((us / 1e6).toFixed(6))}s`;
}

function parseSeconds(name: string, text: string): number {
  const match = /^(-?\d+(?:\.\d{1,6})?)s$/.exec(text);
  if (match === null) throw new RangeError(`${name} is "${text}"; expected seconds like 1.5s`);
  return Math.round(Number(match[1]) * 1e6);
}

/** 0,1,2,5 as "0-2,5". */
function rangesOf(pods: readonly number[]): string {
  const sorted = [...pods].sort((a, b) => a - b);
  const ranges: string[] = [];
  for (let i = 0; i < sorted.length; i += 1) {
    const from = sorted[i] as number;
    while (sorted[i + 1] === (sorted[i] as number) + 1) i += 1;
    const to = sorted[i] as number;
    ranges.push(from === to ? `${from}` : `${from}-${to}`);
  }
  return ranges.join(",");
}

/** Pods a plan may name: a guard against a slip like 0-100000000. */
const PODS_MAX = 10_000;

function parseRanges(text: string): number[] {
  const pods: number[] = [];
  for (const range of text.split(",")) {
    const match = /^(\d+)(?:-(\d+))?$/.exec(range);
    const from = Number(match?.[1]);
    const to = Number(match?.[2] ?? match?.[1]);
    if (match === null || to < from || to >= PODS_MAX) {
      throw new RangeError(`pods=${text}: expected numbers below ${PODS_MAX} such as 0-4,7`);
    }
    for (let pod = from; pod <= to; pod += 1) pods.push(pod);
  }
  return pods;
}
