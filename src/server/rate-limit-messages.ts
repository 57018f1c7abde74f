/**
 * The messages of Envoy's rate limit service as plain values; gRPC and JSON read and write the same
 * ones. Names are those of the protocol.
 */
import { UNIT_SECONDS, type Unit } from "../core/calendar.ts";
import type { DescriptorEntry } from "../ports/descriptors.ts";

export interface RateLimitOverride {
  readonly requestsPerUnit: number;
  /** An index into `UNIT_NAMES`, or any other number that a caller sent. */
  readonly unit: number;
}

export interface RateLimitDescriptor {
  readonly entries: readonly DescriptorEntry[];
  readonly limit: RateLimitOverride | undefined;
  /** Undefined: the request's; 0: asks without spending. Never above 2^53 - 1. */
  readonly hitsAddend: number | undefined;
  /** The cost is given back instead of spent. */
  readonly isNegativeHits: boolean;
}

export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly RateLimitDescriptor[];
  /** 0 counts as 1. */
  readonly hitsAddend: number;
}

/** Names in the order of their numbers. */
export const CODE_NAMES = ["UNKNOWN", "OK", "OVER_LIMIT"] as const;
export const CODE_OK = 1;
export const CODE_OVER_LIMIT = 2;
export type Code = typeof CODE_OK | typeof CODE_OVER_LIMIT;

/** Names in the order of their numbers. */
export const UNIT_NAMES: readonly string[] = [
  "UNKNOWN",
  "SECOND",
  "MINUTE",
  "HOUR",
  "DAY",
  "MONTH",
  "YEAR",
  "WEEK",
];

/** Length of the unit with a number; undefined for `UNKNOWN` and for no unit. */
export function unitSeconds(unit: number): number | undefined {
  const name = UNIT_NAMES[unit]?.toLowerCase();
  return name === undefined || unit === 0 ? undefined : UNIT_SECONDS[name as Unit];
}

/** The number of the unit of exactly this length, 0 (`UNKNOWN`) when there is none. */
export function unitOfSeconds(seconds: number | undefined): number {
  return seconds === undefined ? 0 : (BY_SECONDS.get(seconds) ?? 0);
}

const BY_SECONDS = new Map(UNIT_NAMES.map((_, unit) => [unitSeconds(unit) ?? Number.NaN, unit]));

export interface CurrentLimit {
  readonly requestsPerUnit: number;
  readonly unit: number;
  /** "" for none. */
  readonly name: string;
}

export interface DescriptorStatus {
  readonly code: Code;
  readonly currentLimit: CurrentLimit | undefined;
  readonly limitRemaining: number;
  /** Whole seconds; undefined where nothing limits the descriptor. */
  readonly secondsUntilReset: number | undefined;
}

export interface HeaderValue {
  readonly key: string;
  readonly value: string;
}

export interface RateLimitResponse {
  readonly overallCode: Code;
  readonly statuses: readonly DescriptorStatus[];
  readonly responseHeadersToAdd: readonly HeaderValue[];
  /** A JSON object. */
  readonly dynamicMetadata: Readonly<Record<string, unknown>> | undefined;
}

export const UINT32_MAX = 4_294_967_295;
