/**
 * From a caller's JSON to checks.
 *
 * Fields that the API does not know are ignored, as is usual for JSON APIs, so that a newer client
 * can speak to an older sidecar. `JSON.parse` makes `__proto__` an ordinary property, so it is
 * just another unknown field.
 */
import type { Check } from "../core/decision.ts";
import type { Limit } from "../core/limit.ts";
import type { Decider } from "../ports/decider.ts";
import { closestName } from "./closest-name.ts";
import { describeJson } from "./json-body.ts";
import { badRequest, excerpt, Problem } from "./problem.ts";

/** Largest cost of one check. */
export const COST_MAX = 1_000_000_000;
/** Most bytes of a key in UTF-8. */
export const KEY_BYTES_MAX = 256;
/** Most checks that are decided together, all or nothing. */
export const CHECKS_MAX = 16;
/** Most independent requests of one batch. */
export const BATCH_REQUESTS_MAX = 1_000;

/** Fields of one check as the caller sent them. */
export interface CheckFields {
  readonly limit?: unknown;
  readonly key?: unknown;
  readonly cost?: unknown;
}

interface CheckBody extends CheckFields {
  readonly checks?: unknown;
}

/** What one check-body asks for. */
export interface CheckRequest {
  readonly checks: readonly Check[];
  /** The caller used `checks` and gets one result per check. */
  readonly several: boolean;
}

/** Reads `{limit, key, cost}` or `{checks: [...]}`. */
export function parseCheckRequest(body: unknown, decider: Decider): CheckRequest | Problem {
  if (!isObject(body)) return notAnObject("the body", body);
  const fields: CheckBody = body;
  if (fields.checks === undefined) {
    const check = parseCheck(fields, "", decider);
    return check instanceof Problem ? check : { checks: [check], several: false };
  }
  if (fields.limit !== undefined || fields.key !== undefined || fields.cost !== undefined) {
    return badRequest("the body has both checks and a check of its own; send one of the two");
  }
  return parseSeveral(fields.checks, decider);
}

function parseSeveral(list: unknown, decider: Decider): CheckRequest | Problem {
  if (!Array.isArray(list) || list.length < 1 || list.length > CHECKS_MAX) {
    return badRequest(`checks must be an array of 1 to ${CHECKS_MAX} checks, ${gotList(list)}`);
  }
  const checks: Check[] = [];
  for (const [index, item] of list.entries()) {
    if (!isObject(item)) return notAnObject(`checks[${index}]`, item);
    const check = parseCheck(item, `checks[${index}].`, decider);
    if (check instanceof Problem) return check;
    checks.push(check);
  }
  return { checks, several: true };
}

/** Reads `{requests: [...]}`; the requests themselves are left to `parseCheckRequest`. */
export function parseBatch(body: unknown): readonly unknown[] | Problem {
  if (!isObject(body)) return notAnObject("the body", body);
  const { requests }: { readonly requests?: unknown } = body;
  if (!Array.isArray(requests) || requests.length < 1 || requests.length > BATCH_REQUESTS_MAX) {
    return badRequest(
      `requests must be an array of 1 to ${BATCH_REQUESTS_MAX} check bodies, ${gotList(requests)}`,
    );
  }
  return requests;
}

/** Reads a report: a check whose cost may be negative, a refund. */
export function parseReport(body: unknown, decider: Decider): Check | Problem {
  if (!isObject(body)) return notAnObject("the body", body);
  return parseCheck(body, "", decider, -COST_MAX);
}

/**
 * Reads one check.
 *
 * @param at - Where the fields are, for messages: empty or a path that ends in a dot.
 * @param costMin - Least cost accepted.
 */
export function parseCheck(
  fields: CheckFields,
  at: string,
  decider: Decider,
  costMin = 0,
): Check | Problem {
  const { limit: name, key, cost = 1 } = fields;
  if (typeof name !== "string") {
    return badRequest(`${at}limit must be the name of a limit, ${got(name)}`);
  }
  if (typeof key !== "string") return badRequest(`${at}key must be a string, ${got(key)}`);
  const fault = keyFault(key);
  if (fault !== undefined) return badRequest(`${at}key ${fault}`);
  if (typeof cost !== "number" || !Number.isInteger(cost) || cost < costMin || cost > COST_MAX) {
    return badRequest(
      `${at}cost must be a whole number from ${costMin} to ${COST_MAX}, ${gotCost(cost)}`,
    );
  }
  const limit = decider.limit(name);
  if (limit === undefined) return unknownLimit(name, decider.limits());
  // Adding 0 turns -0 into 0.
  return { limit, key, cost: cost + 0 };
}

/**
 * Keys are compared as strings here and as UTF-8 in the store's digest. Both agree unless a
 * surrogate stands alone: UTF-8 cannot hold it, and replacing it would make different keys equal.
 */
function keyFault(key: string): string | undefined {
  if (key.length === 0) return `must have 1 to ${KEY_BYTES_MAX} bytes, got none`;
  if (/[\ud800-\udfff]/.test(key) && /\p{Surrogate}/u.test(key)) {
    return "holds half of a surrogate pair, which UTF-8 cannot express";
  }
  // A code unit needs at most three bytes.
  if (key.length * 3 <= KEY_BYTES_MAX) return undefined;
  const bytes = Buffer.byteLength(key);
  if (bytes <= KEY_BYTES_MAX) return undefined;
  return `must have 1 to ${KEY_BYTES_MAX} bytes in UTF-8, got ${bytes}`;
}

/** The answer for a limit that is not configured, naming the one that was probably meant. */
export function unknownLimit(name: string, limits: readonly Limit[]): Problem {
  const closest = closestName(
    name,
    limits.map((limit) => limit.name),
  );
  const hint =
    closest === undefined ? "no limits are configured" : `the closest one is "${closest}"`;
  return new Problem(404, `there is no limit ${excerpt(name)}; ${hint}`);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function notAnObject(what: string, value: unknown): Problem {
  return badRequest(`${what} must be a JSON object, got ${describeJson(value)}`);
}

function got(value: unknown): string {
  return value === undefined ? "but it is missing" : `got ${describeJson(value)}`;
}

function gotCost(value: unknown): string {
  return typeof value === "string" ? `got the string ${excerpt(value)}` : got(value);
}

function gotList(value: unknown): string {
  return Array.isArray(value) ? `got ${value.length}` : got(value);
}
