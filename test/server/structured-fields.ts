/** Rate limit headers read as the draft says: lists of structured fields (RFC 9651). */
import type { IncomingHttpHeaders } from "node:http";
import { isInnerList, parseList } from "structured-headers";

/** A policy's name and the parameters that the draft defines. */
export interface Fields {
  readonly name: string;
  readonly q?: unknown;
  readonly w?: unknown;
  readonly r?: unknown;
  readonly t?: unknown;
}

export function readRateLimitPolicy(headers: IncomingHttpHeaders): Fields[] {
  return readNamed(headers, "ratelimit-policy");
}

export function readRateLimit(headers: IncomingHttpHeaders): Fields[] {
  return readNamed(headers, "ratelimit");
}

/** Each item of a header as its name and parameters. */
function readNamed(headers: IncomingHttpHeaders, header: string): Fields[] {
  const value = headers[header];
  if (typeof value !== "string") throw new Error(`there is no single header ${header}`);
  return parseList(value).map((item) => {
    if (isInnerList(item)) throw new Error(`${header} holds an inner list`);
    const [name, parameters] = item;
    if (typeof name !== "string") throw new Error(`${header} names a policy by no string`);
    return { name, ...Object.fromEntries(parameters) };
  });
}
