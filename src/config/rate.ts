/**
 * Rates as people write them: whole tokens per span, `100/s`, `10/15m`.
 *
 * Fractions of a token are refused with the same rate in whole tokens as the advice (`0.5/s` is
 * `1/2s`): rates are counted exactly, and a decimal fraction would only seem to be.
 */
import type { BucketShape } from "../core/limit.ts";
import { type DurationUs, type Tokens, US_PER_MS, US_PER_SECOND } from "../core/units.ts";
import { formatDuration, unitUs } from "./duration.ts";

export const RATE_PATTERN: RegExp = /^[0-9]{1,15}\/(?:[0-9]{1,9})?(?:ms|s|m|h|d)$/;

/** Said of every text that is no rate. */
export const RATE_FORM = "must be whole tokens per span, such as 100/s, 90/m or 10/15m";

/** Longest span of a rate: a leap year. */
const SPAN_MAX_US: DurationUs = 366 * 86_400 * US_PER_SECOND;

export interface Rate {
  readonly tokens: Tokens;
  readonly spanUs: DurationUs;
}

/** @returns The rate, or a sentence about what is wrong with the text. */
export function parseRate(text: string): Rate | string {
  const match = /^(-?[0-9]+)(?:\.([0-9]+))?\/([0-9]*)(ms|s|m|h|d)$/.exec(text);
  if (match === null) return RATE_FORM;
  const [, whole = "", fraction = "", count = "", unit = ""] = match;
  const spanUs = (count === "" ? 1 : Number(count)) * (unitUs(unit) ?? Number.NaN);
  if (whole.startsWith("-")) return "must be positive";
  if (spanUs === 0) return `must have a span longer than zero, such as ${whole}/${unit}`;
  if (spanUs > SPAN_MAX_US) return "must have a span of at most 366d";
  if (/[1-9]/.test(fraction)) return adviseWholeTokens(whole, fraction, count, unit);
  const tokens = Number(whole);
  if (tokens === 0) return "must be at least one token per span";
  if (!Number.isSafeInteger(tokens) || !RATE_PATTERN.test(`${whole}/${count}${unit}`)) {
    return "must be below 10^15 tokens";
  }
  return { tokens, spanUs };
}

/** Writes a rate in its most familiar form: per second, minute, hour or day, else per span. */
export function formatRate(shape: Pick<BucketShape, "refill" | "period" | "tickUs">): string {
  const spanUs = shape.period * shape.tickUs;
  for (const unit of ["s", "m", "h", "d"]) {
    const perUnit = (shape.refill * (unitUs(unit) ?? 0)) / spanUs;
    if (Number.isSafeInteger(perUnit)) return `${perUnit}/${unit}`;
  }
  // A reduced fraction can have a span of single microseconds, which nobody may write.
  const times = US_PER_MS / greatestCommonDivisor(spanUs, US_PER_MS);
  return `${shape.refill * times}/${formatDuration(spanUs * times)}`;
}

function adviseWholeTokens(whole: string, fraction: string, count: string, unit: string): string {
  const scale = 10 ** Math.min(fraction.length, 9);
  const tokens = Math.round(Number(`${whole}.${fraction}`) * scale);
  const span = (count === "" ? 1 : Number(count)) * scale;
  const divisor = greatestCommonDivisor(tokens, span);
  const reduced = span / divisor === 1 ? unit : `${span / divisor}${unit}`;
  return `must be whole tokens per span; write ${tokens / divisor}/${reduced}`;
}

function greatestCommonDivisor(a: number, b: number): number {
  let [divisor, rest] = [a, b];
  while (rest !== 0) [divisor, rest] = [rest, divisor % rest];
  return divisor;
}
