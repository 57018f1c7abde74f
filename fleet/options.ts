/** What a run is asked for on the command line, with the story as the default. */
import { type ParseArgsConfig, parseArgs } from "node:util";
import { formatDuration, parseDuration } from "../src/config/duration.ts";
import { parseRate, type Rate } from "../src/config/rate.ts";
import { defineLimit, type Limit } from "../src/core/limit.ts";
import { type DurationUs, type Tokens, US_PER_SECOND } from "../src/core/units.ts";
import { RECORDS_MAX } from "./journal.ts";
import type { Act, Step } from "./schedule.ts";
import { inOrder, OFFERED_MAX, PODS_MAX, parseOffered, parsePod, parseStep } from "./schedule.ts";
import { TOPOLOGIES, type TopologyKind } from "./topology.ts";

const MODES = ["auto", "hybrid", "leased", "exact"] as const;
type Mode = (typeof MODES)[number];

export interface RunOptions {
  readonly pods: number;
  readonly rate: string;
  readonly burst: Tokens;
  readonly interval: string;
  /** Requests per second offered to each pod that has no rate of its own. */
  readonly offered: number;
  /** Rates of single pods, by number. */
  readonly hot: ReadonlyMap<number, number>;
  readonly durationUs: DurationUs;
  readonly margin: number;
  readonly key: string;
  readonly decisionTimeout: string;
  readonly membershipTimeout: string;
  readonly embedded: boolean;
  readonly redis: TopologyKind;
  readonly mode: Mode;
  /** Checks per second offered to each pod of the limit whose tokens are counted. */
  readonly counted: number;
  readonly steps: readonly Step[];
  readonly json: boolean;
  /** The limit as the sidecars count it. */
  readonly limit: Limit;
}

export const HELP = `npm run fleet -- [options]

Starts a redis-server, real sidecars and a load generator, plays a schedule, and ends with a
verdict. Without options: a story of 40 s in which pods come, one is killed, and Redis goes and
returns.

  --pods N                 sidecars at the start (3)
  --rate N/SPAN            rate of the one limit, for the whole fleet (1000/s)
  --burst N                burst of the limit (one second of rate)
  --interval TIME          reconcile interval (100ms)
  --offered RATE           checks per second offered to each pod, evenly spaced (500)
  --hot POD=RATE           another rate for one pod; may be repeated
  --duration TIME          length of the load (20s)
  --margin PART            part of the limit that the fleet may use without Redis (0.8)
  --key TEXT               the one key that all checks name (all)
  --decision-timeout TIME  no check is held for longer (10ms)
  --membership-timeout TIME  a silent pod is dropped after this (5s)
  --embedded               no Redis: one pod with the embedded store
  --redis KIND             single, sentinel (a primary, two replicas, three Sentinels) or cluster
                           (three primaries, three replicas) (single)
  --mode MODE              auto, hybrid, leased or exact (auto)
  --counted RATE           checks per second offered to each pod of a limit that refills a token a
                           day, whose tokens are counted in the store as well (20)
  --at TIME:ACT            a step of the schedule; may be repeated
  --json                   prints the verdict for machines and nothing else
  --help                   prints this

Acts: add=N  kill=N (SIGKILL, the youngest)  term=N (SIGTERM, the youngest)
  restart (all pods, one after another)  redis-stop (the primary; memory lost)
  redis-hang (SIGSTOP, the primary)  redis-start  redis-failover  redis=COMMAND  offer=RATE[@POD]
`;

const FLAGS = {
  pods: { type: "string" },
  rate: { type: "string" },
  burst: { type: "string" },
  interval: { type: "string" },
  offered: { type: "string" },
  hot: { type: "string", multiple: true },
  duration: { type: "string" },
  margin: { type: "string" },
  key: { type: "string" },
  "decision-timeout": { type: "string" },
  "membership-timeout": { type: "string" },
  embedded: { type: "boolean" },
  redis: { type: "string" },
  mode: { type: "string" },
  counted: { type: "string" },
  at: { type: "string", multiple: true },
  json: { type: "boolean" },
  help: { type: "boolean" },
} as const satisfies ParseArgsConfig["options"];

const STORY = ["8s:add=3", "16s:kill=1", "22s:redis-stop", "31s:redis-start"];
const STORY_DURATION = "40s";

/** A command line that cannot be run; every problem is a sentence. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

/**
 * Reads the arguments.
 *
 * @returns The options, or "help".
 * @throws {UsageError} With all problems at once.
 */
export function parseOptions(args: readonly string[]): RunOptions | "help" {
  let values: ReturnType<typeof readFlags>;
  try {
    values = readFlags(args);
  } catch (error) {
    throw new UsageError([error instanceof Error ? error.message : String(error)]);
  }
  if (values.help === true) return "help";
  const problems: string[] = [];
  const read = new Reader(problems);
  const isStory = args.every((arg) => arg === "--json");
  const embedded = values.embedded === true;
  const rateText = values.rate ?? "1000/s";
  const rate = read.rate(rateText);
  const perSecond = Math.max(1, Math.floor((rate.tokens / rate.spanUs) * US_PER_SECOND));
  const interval = values.interval ?? "100ms";
  const intervalUs = read.duration("--interval", interval);
  const margin = read.part("--margin", values.margin ?? "0.8");
  const options: Omit<RunOptions, "limit"> = {
    pods: read.whole("--pods", values.pods ?? (embedded ? "1" : "3"), PODS_MAX),
    rate: rateText,
    burst: read.whole("--burst", values.burst ?? String(perSecond), Number.MAX_SAFE_INTEGER),
    interval,
    offered: read.offered("--offered", values.offered ?? "500"),
    hot: read.hot(values.hot ?? []),
    durationUs: read.duration("--duration", values.duration ?? (isStory ? STORY_DURATION : "20s")),
    margin,
    key: values.key ?? "all",
    decisionTimeout: values["decision-timeout"] ?? "10ms",
    membershipTimeout: values["membership-timeout"] ?? "5s",
    embedded,
    redis: read.choice("--redis", values.redis ?? "single", TOPOLOGIES),
    mode: read.choice("--mode", values.mode ?? "auto", MODES),
    counted: embedded ? 0 : read.offered("--counted", values.counted ?? "20"),
    steps: inOrder(read.steps(values.at ?? (isStory ? STORY : []))),
    json: values.json === true,
  };
  read.duration("--decision-timeout", options.decisionTimeout);
  read.duration("--membership-timeout", options.membershipTimeout);
  read.fits(options);
  const limit = problems.length === 0 ? read.limit(options, rate, intervalUs) : undefined;
  if (limit === undefined) throw new UsageError(problems);
  return { ...options, limit };
}

function readFlags(args: readonly string[]) {
  return parseArgs({ args: [...args], options: FLAGS, strict: true }).values;
}

/** Reads values and notes what is wrong with them; a value that is wrong reads as something. */
class Reader {
  readonly #problems: string[];

  constructor(problems: string[]) {
    this.#problems = problems;
  }

  whole(flag: string, text: string, max: number): number {
    const value = /^[1-9][0-9]{0,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value <= max) return value;
    this.#problems.push(`${flag} must be a whole number from 1 to ${max}, got ${text}`);
    return 1;
  }

  rate(text: string): Rate {
    const rate = parseRate(text);
    if (typeof rate !== "string") return rate;
    this.#problems.push(`--rate ${rate}, got ${text}`);
    return { tokens: 1, spanUs: US_PER_SECOND };
  }

  duration(flag: string, text: string): DurationUs {
    const us = parseDuration(text);
    if (us !== undefined && us > 0) return us;
    this.#problems.push(`${flag} must be a time such as 500ms, 20s or 1m, got ${text}`);
    return US_PER_SECOND;
  }

  choice<T extends string>(flag: string, text: string, choices: readonly [T, ...T[]]): T {
    const chosen = choices.find((choice) => choice === text);
    if (chosen !== undefined) return chosen;
    this.#problems.push(`${flag} must be one of ${choices.join(", ")}, got ${text}`);
    return choices[0];
  }

  part(flag: string, text: string): number {
    const value = /^[0-9]*\.?[0-9]+$/.test(text) ? Number(text) : Number.NaN;
    if (value > 0 && value <= 1) return value;
    this.#problems.push(`${flag} must be above 0 and at most 1, got ${text}`);
    return 1;
  }

  offered(flag: string, text: string): number {
    const perSecond = parseOffered(text);
    if (perSecond !== undefined) return perSecond;
    this.#problems.push(`${flag} must be a rate from 0 to ${OFFERED_MAX} per second, got ${text}`);
    return 1;
  }

  hot(texts: readonly string[]): ReadonlyMap<number, number> {
    const hot = new Map<number, number>();
    for (const text of texts) {
      const [name = "", rate = ""] = text.split("=", 2);
      const pod = parsePod(name);
      if (pod !== undefined) hot.set(pod, this.offered(`--hot ${name}`, rate));
      else this.#problems.push(`--hot must be a pod and a rate such as pod-1=2000, got ${text}`);
    }
    return hot;
  }

  steps(texts: readonly string[]): Step[] {
    const steps: Step[] = [];
    for (const text of texts) {
      const step = parseStep(text);
      if (typeof step === "string") this.#problems.push(`--at: ${step}`);
      else steps.push(step);
    }
    return steps;
  }

  limit(
    { burst, margin }: Pick<RunOptions, "burst" | "margin">,
    { tokens, spanUs }: Rate,
    intervalUs: DurationUs,
  ): Limit | undefined {
    const fallback = { policy: "local", margin, maxPods: 20 } as const;
    try {
      return defineLimit({ name: "limit", tokens, spanUs, burst, intervalUs, fallback });
    } catch (error) {
      this.#problems.push(error instanceof Error ? error.message : String(error));
      return undefined;
    }
  }

  /** What is wrong with the options together. */
  fits(options: Omit<RunOptions, "limit">): void {
    const { embedded, pods, steps, durationUs } = options;
    if (embedded && (pods > 1 || steps.some(({ act }) => act.kind === "add"))) {
      this.#problems.push("--embedded is for one pod: without a store pods cannot share a limit");
    }
    if (embedded && steps.some(({ act }) => act.kind.startsWith("redis"))) {
      this.#problems.push("--embedded runs without Redis; there is none to act on");
    }
    const has = (kind: Act["kind"]): boolean => steps.some(({ act }) => act.kind === kind);
    if (options.redis === "single" && has("redis-failover")) {
      this.#problems.push("redis-failover needs --redis sentinel or cluster");
    }
    if (has("restart") && pods < 2) {
      this.#problems.push("restart shifts the load to the other pods and needs --pods 2 or more");
    }
    for (const { atUs, text } of steps) {
      if (atUs < durationUs) continue;
      const end = formatDuration(durationUs);
      this.#problems.push(`--at: ${text} comes after the end of the load (--duration ${end})`);
    }
    const records = (durationUs / US_PER_SECOND) * mostOffered(options);
    if (records > RECORDS_MAX) {
      const most = `${RECORDS_MAX} requests can be kept`;
      this.#problems.push(`${Math.round(records)} requests would be offered, and ${most}`);
    }
  }
}

/** Requests per second at most, as if all pods of the run were there at once. */
function mostOffered({ pods, offered, counted, hot, steps }: Omit<RunOptions, "limit">): number {
  let count = pods;
  let most = offered;
  for (const { act } of steps) {
    if (act.kind === "add") count += act.pods;
    if (act.kind === "offer" && act.pod === undefined) most = Math.max(most, act.perSecond);
  }
  const extra = [...hot.values()].reduce((sum, perSecond) => sum + perSecond, 0);
  return count * (most + counted) + extra;
}
