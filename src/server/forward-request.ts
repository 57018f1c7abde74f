/**
 * What a proxy asks with: the policy it names and the request that it asks about.
 *
 * nginx, Caddy, HAProxy and Traefik send a request of their own and tell the original one in
 * headers; Envoy repeats the original one with a prefix before its path. A proxy that passes its
 * client's headers on must set the headers below itself, or the client could tell them.
 */
import type { IncomingMessage } from "node:http";
import type { OriginalRequest } from "../ports/policy.ts";
import { badRequest, excerpt, Problem } from "./problem.ts";
import { decodeSegment } from "./query.ts";

export const FORWARD_PREFIX = "/v1/forward";

/** In place of a name: the first policy that matches. */
const ANY_POLICY = "*";

/** In the order in which they are looked for. */
const METHOD_HEADERS = ["x-forwarded-method", "x-original-method"];
const TARGET_HEADERS = ["x-forwarded-uri", "x-original-uri"];

const DENY_STATUS_HEADER = "x-ratelimit-deny-status";
const DENY_STATUSES: ReadonlyMap<string, number> = new Map([
  ["401", 401],
  ["403", 403],
  ["429", 429],
]);

export interface ForwardRequest {
  /** Name of the policy; undefined for the first that matches. */
  readonly policy: string | undefined;
  readonly original: OriginalRequest;
  /** Status of a denial. */
  readonly denyStatus: number;
}

/** Tells whether a request target is one of forward's: the prefix itself or something below it. */
export function isForward(target: string): boolean {
  if (!target.startsWith(FORWARD_PREFIX)) return false;
  const next = target[FORWARD_PREFIX.length];
  return next === undefined || next === "/" || next === "?";
}

/** @param target - The request target in origin form, for which `isForward` holds. */
export function parseForward(req: IncomingMessage, target: string): ForwardRequest | Problem {
  const { policy, rest } = splitSelector(target.slice(FORWARD_PREFIX.length));
  const told = { method: firstTold(req, METHOD_HEADERS), target: firstTold(req, TARGET_HEADERS) };
  const denyStatus = denyStatusOf(req);
  if (told.method instanceof Problem) return told.method;
  if (told.target instanceof Problem) return told.target;
  if (denyStatus instanceof Problem) return denyStatus;
  const original: OriginalRequest = {
    method: told.method ?? req.method ?? "GET",
    target: told.target ?? (rest.startsWith("/") ? rest : `/${rest}`),
    header: (name) => req.headersDistinct[name] ?? [],
    peer: req.socket.remoteAddress,
  };
  return { policy, original, denyStatus };
}

/** `/@name/path?query` is a name and the rest; without a name everything is the rest. */
function splitSelector(text: string): { policy: string | undefined; rest: string } {
  if (!text.startsWith("/@")) return { policy: undefined, rest: text };
  const length = text.slice(2).search(/[/?]/);
  const end = length < 0 ? text.length : length + 2;
  // Proxies may escape the star. What does not decode is the name of no policy.
  const name = decodeSegment(text.slice(2, end)) ?? "";
  return { policy: name === ANY_POLICY ? undefined : name, rest: text.slice(end) };
}

/** The first header that is there; a header that is empty is not. */
function firstTold(req: IncomingMessage, names: readonly string[]): string | undefined | Problem {
  for (const name of names) {
    const [value, ...more] = req.headersDistinct[name] ?? [];
    // Two lines would mean that the proxy adds its own to what its client sent.
    if (more.length > 0) return badRequest(`the header ${name} is there more than once`);
    if (value !== undefined && value !== "") return value;
  }
  return undefined;
}

function denyStatusOf(req: IncomingMessage): number | Problem {
  const values = req.headersDistinct[DENY_STATUS_HEADER];
  if (values === undefined) return 429;
  const text = values.join(", ");
  return (
    DENY_STATUSES.get(text) ??
    badRequest(`${DENY_STATUS_HEADER} must be 401, 403 or 429, got ${excerpt(text)}`)
  );
}
