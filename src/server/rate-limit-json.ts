/**
 * `POST /json`: Envoy's rate limit service for callers that cannot speak gRPC.
 *
 * Requests and answers are the messages in protobuf's JSON form: names in camelCase or as in the
 * .proto file, enums by name or number, 64-bit numbers as texts or numbers, null for what is
 * absent. Unknown fields are ignored, so that a newer caller is understood.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { DurationUs } from "../core/units.ts";
import type { Clock } from "../ports/clock.ts";
import type { DescriptorEntry } from "../ports/descriptors.ts";
import { sendJson, sendProblem } from "./answer.ts";
import { describeJson, parseJson, readBody } from "./json-body.ts";
import { asciiJson, badRequest, Problem, reducedCapacity } from "./problem.ts";
import {
  CODE_NAMES,
  CODE_OVER_LIMIT,
  type DescriptorStatus,
  type RateLimitDescriptor,
  type RateLimitOverride,
  type RateLimitRequest,
  type RateLimitResponse,
  UINT32_MAX,
  UNIT_NAMES,
} from "./rate-limit-messages.ts";
import type { RateLimitAnswer, RateLimitService } from "./rate-limit-service.ts";
import { RefusedRequest } from "./refused-request.ts";

export interface RateLimitJsonParts {
  readonly service: RateLimitService;
  readonly clock: Clock;
  /** Told how long each request took from its last byte to its answer. */
  readonly observeUs: (duration: DurationUs) => void;
}

/** @param fail - Answers a request that met a bug. */
export type RateLimitJsonHandler = (
  req: IncomingMessage,
  res: ServerResponse,
  fail: (error: unknown) => void,
) => void;

export function createRateLimitJson(parts: RateLimitJsonParts): RateLimitJsonHandler {
  return (req, res, fail) => {
    readBody(req, (bytes) => {
      try {
        decide(parts, bytes, res, fail);
      } catch (error) {
        fail(error);
      }
    });
  };
}

function decide(
  { service, clock, observeUs }: RateLimitJsonParts,
  bytes: Buffer | Problem,
  res: ServerResponse,
  fail: (error: unknown) => void,
): void {
  const startedUs = clock.monotonicUs();
  const body = bytes instanceof Problem ? bytes : parseJson(bytes);
  const request = body instanceof Problem ? body : parseRateLimitRequest(body);
  if (request instanceof Problem) {
    sendProblem(res, request);
    return;
  }
  const send = (answer: RateLimitAnswer): void => {
    if (answer instanceof RefusedRequest) {
      const { closedLimit, message } = answer;
      sendProblem(
        res,
        closedLimit === undefined ? badRequest(message) : reducedCapacity(closedLimit),
      );
    } else {
      const status = answer.overallCode === CODE_OVER_LIMIT ? 429 : 200;
      sendJson(res, status, asciiJson(responseJson(answer)));
    }
    observeUs(clock.monotonicUs() - startedUs);
  };
  const answer = service.shouldRateLimit(request);
  if (answer instanceof Promise) answer.then(send).catch(fail);
  else send(answer);
}

/** Thrown inside this file only: a body nests, and its first fault ends the reading. */
class Malformed extends Error {
  override readonly name = "Malformed";
}

/** @returns The request, or what is wrong with the body. */
export function parseRateLimitRequest(body: unknown): RateLimitRequest | Problem {
  try {
    const fields = objectOf(body, "the body");
    return {
      domain: textIn(fields, "domain"),
      descriptors: listIn(fields, "descriptors").map(parseDescriptor),
      hitsAddend: numberOf(fieldOf(fields, "hitsAddend"), "hitsAddend", UINT32_MAX) ?? 0,
    };
  } catch (error) {
    if (error instanceof Malformed) return badRequest(error.message);
    throw error;
  }
}

function parseDescriptor(value: unknown): RateLimitDescriptor {
  const fields = objectOf(value, "a descriptor");
  const most = Number.MAX_SAFE_INTEGER;
  return {
    entries: listIn(fields, "entries").map(parseEntry),
    limit: parseOverride(fieldOf(fields, "limit")),
    hitsAddend: numberOf(fieldOf(fields, "hitsAddend"), "hitsAddend of a descriptor", most),
    isNegativeHits: flagIn(fields, "isNegativeHits"),
  };
}

function parseEntry(value: unknown): DescriptorEntry {
  const fields = objectOf(value, "an entry");
  return { key: textIn(fields, "key"), value: textIn(fields, "value") };
}

function parseOverride(value: unknown): RateLimitOverride | undefined {
  if (value === undefined || value === null) return undefined;
  const fields = objectOf(value, "limit");
  const requests = numberOf(fieldOf(fields, "requestsPerUnit"), "requestsPerUnit", UINT32_MAX);
  const unit = fieldOf(fields, "unit") ?? 0;
  const named = typeof unit === "string" ? UNIT_NAMES.indexOf(unit) : unit;
  if (typeof named !== "number" || !Number.isInteger(named) || named < 0) {
    throw new Malformed(`unit must be one of ${UNIT_NAMES.join(", ")}, got ${describeJson(unit)}`);
  }
  return { requestsPerUnit: requests ?? 0, unit: named };
}

function objectOf(value: unknown, what: string): object {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new Malformed(`${what} must be an object, got ${describeJson(value)}`);
}

/** A field by its JSON name or by its name in the .proto file; inherited names are no fields. */
function fieldOf(fields: object, name: string): unknown {
  const spelt = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const given = [...new Set([name, spelt])].filter((each) => Object.hasOwn(fields, each));
  if (given.length > 1) throw new Malformed(`${given.join(" and ")} are the same field`);
  return given[0] === undefined ? undefined : (fields as Record<string, unknown>)[given[0]];
}

function listIn(fields: object, name: string): readonly unknown[] {
  const value = fieldOf(fields, name) ?? [];
  if (Array.isArray(value)) return value;
  throw new Malformed(`${name} must be an array, got ${describeJson(value)}`);
}

function textIn(fields: object, name: string): string {
  const value = fieldOf(fields, name) ?? "";
  // A lone surrogate is no text; and inside, it stands for a byte that is not UTF-8.
  if (typeof value === "string" && !/\p{Surrogate}/u.test(value)) return value;
  throw new Malformed(`${name} must be a text, got ${describeJson(value)}`);
}

function flagIn(fields: object, name: string): boolean {
  const value = fieldOf(fields, name) ?? false;
  if (typeof value === "boolean") return value;
  throw new Malformed(`${name} must be true or false, got ${describeJson(value)}`);
}

function numberOf(value: unknown, name: string, most: number): number | undefined {
  if (value === undefined || value === null) return undefined;
  const isDigits = typeof value === "string" && /^[0-9]{1,20}$/.test(value);
  const number = isDigits ? Math.min(Number(value), Number.MAX_SAFE_INTEGER) : value;
  if (typeof number === "number" && Number.isInteger(number) && number >= 0 && number <= most) {
    return number;
  }
  throw new Malformed(
    `${name} must be a whole number from 0 to ${most}, got ${describeJson(value)}`,
  );
}

/** What is 0 or empty is left out, as protobuf has it. */
function responseJson(response: RateLimitResponse): object {
  const { overallCode, statuses, responseHeadersToAdd, dynamicMetadata } = response;
  return {
    overallCode: CODE_NAMES[overallCode],
    statuses: statuses.map(statusJson),
    ...(responseHeadersToAdd.length > 0 && { responseHeadersToAdd }),
    ...(dynamicMetadata !== undefined && { dynamicMetadata }),
  };
}

function statusJson(status: DescriptorStatus): object {
  const { currentLimit, limitRemaining, secondsUntilReset } = status;
  return {
    code: CODE_NAMES[status.code],
    ...(currentLimit !== undefined && {
      currentLimit: {
        ...(currentLimit.requestsPerUnit > 0 && { requestsPerUnit: currentLimit.requestsPerUnit }),
        ...(currentLimit.unit > 0 && { unit: UNIT_NAMES[currentLimit.unit] }),
        ...(currentLimit.name !== "" && { name: currentLimit.name }),
      },
    }),
    ...(limitRemaining > 0 && { limitRemaining }),
    ...(secondsUntilReset !== undefined && { durationUntilReset: `${secondsUntilReset}s` }),
  };
}
