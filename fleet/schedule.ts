/**
 * The schedule of a run: what happens to the fleet and to its store, and when.
 *
 * A step is written `TIME:ACT`, such as `5s:add=2` or `20s:redis-stop`. Pods are called `pod-1`,
 * `pod-2`, ... in the order in which they start; a number alone means the same pod.
 */
import { parseDuration } from "../src/config/duration.ts";
import type { DurationUs } from "../src/core/units.ts";

export type Act =
  /** Starts that many pods; each is offered the rate of `--offered` as soon as it is ready. */
  | { readonly kind: "add"; readonly pods: number }
  /** SIGKILL for the pods that started last. */
  | { readonly kind: "kill"; readonly pods: number }
  /** SIGTERM for the pods that started last. */
  | { readonly kind: "term"; readonly pods: number }
  /** Replaces all pods one after another, without an interruption that a caller could see. */
  | { readonly kind: "restart" }
  /** Ends the primary; connections are refused and its memory is lost. */
  | { readonly kind: "redis-stop" }
  /** SIGSTOP: connections stay open and nothing is answered. */
  | { readonly kind: "redis-hang" }
  /** Starts what was ended, and lets go on what hangs. */
  | { readonly kind: "redis-start" }
  /** Makes another server the primary, on an operator's word. */
  | { readonly kind: "redis-failover" }
  /** Sends one command, its words separated by single spaces. */
  | { readonly kind: "redis"; readonly command: readonly string[] }
  /** Changes the offered rate of one pod, or of all pods and of those still to come. */
  | { readonly kind: "offer"; readonly perSecond: number; readonly pod: number | undefined };

export interface Step {
  /** Since the start of the load. */
  readonly atUs: DurationUs;
  readonly act: Act;
  /** The step as it was written. */
  readonly text: string;
}

/** More pods than one machine can run in earnest. */
export const PODS_MAX = 200;

/** More requests per second than one generator can send. */
export const OFFERED_MAX = 100_000;

const FORM = "a step is TIME:ACT, such as 5s:add=2 or 20s:redis-stop";
const ACTS =
  "the acts are add=N, kill=N, term=N, restart, redis-stop, redis-hang, redis-start, " +
  "redis-failover, redis=COMMAND and offer=RATE[@POD]";

/** @returns The step, or a sentence about what is wrong with the text. */
export function parseStep(text: string): Step | string {
  const colon = text.indexOf(":");
  if (colon < 0) return `${FORM}, got ${JSON.stringify(text)}`;
  const atUs = parseDuration(text.slice(0, colon));
  if (atUs === undefined) {
    return `${FORM}; ${JSON.stringify(text.slice(0, colon))} is no time such as 500ms, 5s or 1m`;
  }
  const act = parseAct(text.slice(colon + 1));
  return typeof act === "string" ? act : { atUs, act, text: text.slice(colon + 1) };
}

/** Steps in the order in which they happen; those of one instant keep the order of writing. */
export function inOrder(steps: readonly Step[]): readonly Step[] {
  return [...steps].sort((a, b) => a.atUs - b.atUs);
}

/** @returns The number of the pod, from 1, or undefined when the text names none. */
export function parsePod(text: string): number | undefined {
  const digits = /^(?:pod-)?([1-9][0-9]{0,2})$/.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** @returns Requests per second, or undefined when the text is no such number. */
export function parseOffered(text: string): number | undefined {
  const digits = /^([0-9]{1,6}(?:\.[0-9]{1,3})?)(?:\/s)?$/.exec(text)?.[1];
  if (digits === undefined) return undefined;
  const perSecond = Number(digits);
  return perSecond <= OFFERED_MAX ? perSecond : undefined;
}

function parseAct(text: string): Act | string {
  const equals = text.indexOf("=");
  const name = equals < 0 ? text : text.slice(0, equals);
  const value = equals < 0 ? undefined : text.slice(equals + 1);
  switch (name) {
    case "add":
    case "kill":
    case "term":
      return parsePods(name, value);
    case "restart":
    case "redis-stop":
    case "redis-hang":
    case "redis-start":
    case "redis-failover":
      return value === undefined ? { kind: name } : `${name} takes no value, got ${value}`;
    case "redis": {
      const command = (value ?? "").split(" ").filter((word) => word !== "");
      return command.length > 0 ? { kind: "redis", command } : "redis needs a command: redis=PING";
    }
    case "offer":
      return parseOffer(value ?? "");
    default:
      return `there is no act ${JSON.stringify(name)}; ${ACTS}`;
  }
}

function parsePods(kind: "add" | "kill" | "term", value: string | undefined): Act | string {
  if (value === undefined) return { kind, pods: 1 };
  const pods = /^[1-9][0-9]{0,3}$/.test(value) ? Number(value) : Number.NaN;
  if (pods <= PODS_MAX) return { kind, pods };
  return `${kind} needs a number of pods from 1 to ${PODS_MAX}, got ${JSON.stringify(value)}`;
}

function parseOffer(value: string): Act | string {
  const at = value.indexOf("@");
  const perSecond = parseOffered(at < 0 ? value : value.slice(0, at));
  if (perSecond === undefined) {
    return `offer needs a rate from 0 to ${OFFERED_MAX} per second, got ${JSON.stringify(value)}`;
  }
  if (at < 0) return { kind: "offer", perSecond, pod: undefined };
  const pod = parsePod(value.slice(at + 1));
  if (pod !== undefined) return { kind: "offer", perSecond, pod };
  return `offer needs a pod such as pod-1 after the @, got ${JSON.stringify(value)}`;
}
