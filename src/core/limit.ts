/**
 * A limit: a rate and a burst that all pods of a fleet obey together, in the integer form that the
 * accounting needs.
 *
 * A rate is kept as the pair "`refill` tokens per `period` ticks", reduced by their greatest common
 * divisor. A bucket is kept as a deficit in token-ticks (tokens missing times `period`), so that
 * time and costs only ever add whole numbers: no remainder, no drift, no rounding of an emission
 * interval to zero (research: GCRA pitfalls of redis-cell 11, 80 and golang 34861).
 */
import { type DurationUs, type Tokens, type TokensPerSecond, US_PER_SECOND } from "./units.ts";

/** What a pod does about a limit while the store cannot be reached. */
export interface Fallback {
  /** `local`: a stricter local limit; `open`: admit and count; `closed`: refuse with 503. */
  readonly policy: "local" | "open" | "closed";
  /** The part of rate and burst that the whole fleet may use when isolated, in (0, 1]. */
  readonly margin: number;
  /** Pods to assume when this pod has never joined the fleet. */
  readonly maxPods: number;
}

/** How a limit is kept; see docs/design.md. */
export type Mode = "hybrid" | "leased" | "exact";

/** What a denied check does to a bucket that it asked: nothing, or it spends the cost anyway. */
export type OnDeny = "keep" | "debit";

/** The integer shape of a token bucket. */
export interface BucketShape {
  /** Tokens refilled per `period`, a positive integer. */
  readonly refill: number;
  /** Length of the period in ticks, a positive integer. */
  readonly period: number;
  /** Length of a tick in microseconds. */
  readonly tickUs: number;
  /** Most tokens the bucket holds, a positive integer. */
  readonly burst: Tokens;
  /** How far below empty the bucket may go; deeper debt is clipped and counted. */
  readonly maxDebt: Tokens;
}

export interface Limit extends BucketShape {
  readonly name: string;
  readonly rate: TokensPerSecond;
  /** `auto` is resolved by the engine, by the size of the fleet. */
  readonly mode: Mode | "auto";
  /** Configured as leased or exact: nothing is given away after a data loss either. */
  readonly isStrict: boolean;
  /** Configured as `auto`: `mode` and `intervalUs` follow the size of the fleet. */
  readonly isAuto: boolean;
  /** `auto`: the over-admission bound it may accept, as a part of the burst. */
  readonly tolerance: number;
  /** Reconcile interval of this limit. */
  readonly intervalUs: DurationUs;
  readonly fallback: Fallback;
  /** A denial is counted but not enforced. */
  readonly shadow: boolean;
  /** `debit` is for callers that tell of what was already used; the front doors see to it. */
  readonly onDeny: OnDeny;
  /** Limits that hold in place of this one for single keys. */
  readonly overrides: ReadonlyMap<string, Limit>;
}

export interface LimitSpec {
  readonly name: string;
  /** The rate as `tokens` per `spanUs`; both positive, `tokens` a whole number. */
  readonly tokens: Tokens;
  readonly spanUs: DurationUs;
  readonly burst: Tokens;
  /** The configured reconcile interval; the limit may need a shorter one. */
  readonly intervalUs: DurationUs;
  readonly fallback: Fallback;
  /** Default `hybrid`. */
  readonly mode?: Mode | "auto";
  /** Default 0.5. */
  readonly tolerance?: number;
  readonly shadow?: boolean;
  readonly onDeny?: OnDeny;
  readonly overrides?: ReadonlyMap<string, Limit>;
}

const TOLERANCE_DEFAULT = 0.5;
const LOST_PART = 0.1;

/** Products of the accounting stay below this, so that sums of two stay exact in a double. */
const EXACT_MAX = 2 ** 52;

/** Coarser ticks are tried in this order until the arithmetic fits. */
const TICKS_US = [1, 1_000, 1_000_000] as const;

/**
 * Bounds of the shortest interval. Where two tokens come faster than the upper one, a shorter
 * interval still carries several tokens a report; below that it would only cost store calls.
 */
const INTERVAL_FLOOR_MIN_US = 5_000;
const INTERVAL_FLOOR_MAX_US = 20_000;

/**
 * Builds a limit.
 *
 * @throws {RangeError} When a number is not a positive whole one, or when rate and burst together
 *   cannot be counted exactly in 2^52. The message is a sentence for the author of a configuration.
 */
export function defineLimit(spec: LimitSpec): Limit {
  requirePositiveInteger("the tokens of a rate", spec.tokens);
  requirePositiveInteger("the span of a rate in microseconds", spec.spanUs);
  requirePositiveInteger("burst", spec.burst);
  const rate = (spec.tokens / spec.spanUs) * US_PER_SECOND;
  const mode = spec.mode ?? "hybrid";
  const maxDebt = Math.max(spec.burst, Math.ceil(2 * rate));
  const shape = fitShape(spec.tokens, spec.spanUs, spec.burst, maxDebt);
  if (shape === undefined) {
    throw new RangeError(
      `a burst of ${spec.burst} with ${spec.tokens} tokens per ${spec.spanUs} us ` +
        "cannot be counted exactly; choose a smaller burst or a shorter span",
    );
  }
  // A bucket that refills within a few intervals overflows between two reconciles, so that a pod
  // would lose tokens it is owed (errata-hybrid F8).
  const quarterBurstUs = Math.floor((spec.burst / (4 * rate)) * US_PER_SECOND);
  return {
    ...shape,
    name: spec.name,
    rate,
    mode,
    isAuto: mode === "auto",
    isStrict: mode === "leased" || mode === "exact",
    tolerance: spec.tolerance ?? TOLERANCE_DEFAULT,
    intervalUs:
      mode === "hybrid"
        ? Math.max(intervalFloorUs(rate), Math.min(spec.intervalUs, quarterBurstUs))
        : spec.intervalUs,
    fallback: spec.fallback,
    shadow: spec.shadow ?? false,
    onDeny: spec.onDeny ?? "keep",
    overrides: spec.overrides ?? new Map(),
  };
}

function intervalFloorUs(rate: TokensPerSecond): DurationUs {
  const twoTokensUs = Math.ceil((2 / rate) * US_PER_SECOND);
  return Math.max(INTERVAL_FLOOR_MIN_US, Math.min(INTERVAL_FLOOR_MAX_US, twoTokensUs));
}

/**
 * The coarsest exact shape of a bucket, or undefined when none fits below 2^52.
 *
 * A span that is no multiple of the tick is rounded up, so a coarse tick makes a rate slower and
 * never faster.
 */
export function fitShape(
  tokens: number,
  spanUs: number,
  burst: Tokens,
  maxDebt: Tokens,
): BucketShape | undefined {
  for (const tickUs of TICKS_US) {
    const ticks = Math.ceil(spanUs / tickUs);
    const divisor = greatestCommonDivisor(tokens, ticks);
    const period = ticks / divisor;
    if ((burst + maxDebt) * period < EXACT_MAX) {
      return { refill: tokens / divisor, period, tickUs, burst, maxDebt };
    }
  }
  return undefined;
}

/**
 * Part of the burst that a key starts with after the store lost its data; a strict limit starts
 * with nothing.
 */
export function lostPart(limit: Limit): number {
  return limit.isStrict ? 0 : LOST_PART;
}

/** The limit that holds for one key: its override, else the limit itself. */
export function limitForKey(limit: Limit, key: string): Limit {
  if (limit.overrides.size === 0) return limit;
  return limit.overrides.get(key) ?? limit;
}

function greatestCommonDivisor(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y !== 0) [x, y] = [y, x % y];
  return x;
}

function requirePositiveInteger(what: string, value: number): void {
  if (!Number.isSafeInteger(value) || value <= 0) {
    throw new RangeError(`${what} must be a positive whole number below 2^53, got ${value}`);
  }
}
