/** The decision API over HTTP: which request goes where. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { DurationUs } from "../core/units.ts";
import type { Clock } from "../ports/clock.ts";
import type { Decider } from "../ports/decider.ts";
import { sendJson, sendOptions, sendProblem } from "./answer.ts";
import { CheckApi, denyStatusIn } from "./check-api.ts";
import { unknownLimit } from "./check-body.ts";
import { ForwardApi, type ForwardOptions } from "./forward.ts";
import { isForward } from "./forward-request.ts";
import { createRateHeaders, type HeaderShapes } from "./headers.ts";
import { describeLimit } from "./limits-json.ts";
import { openApiDocument } from "./openapi.ts";
import { asciiJson, badRequest, excerpt, methodNotAllowed, Problem } from "./problem.ts";
import { decodeSegment, parseQuery } from "./query.ts";
import type { RateLimitJsonHandler } from "./rate-limit-json.ts";

export type RequestHandler = (req: IncomingMessage, res: ServerResponse) => void;

export interface HttpApiOptions {
  readonly clock: Clock;
  /** Shapes of the rate limit headers; `["ietf"]` when left out. */
  readonly headers?: HeaderShapes;
  /** Wall clock in ms since the epoch, for the `x-epoch` headers. */
  readonly wallMs: () => number;
  /** Told how long each check, or batch of checks, took from its last byte to its answer. */
  readonly observeUs?: (duration: DurationUs) => void;
  /** For `/json`, which is not there without. */
  readonly rateLimitJson?: RateLimitJsonHandler;
  /** For `/v1/forward`, which is not there without. */
  readonly forward?: ForwardOptions;
  /** A request met a bug. It was answered with 500; what becomes of the process is decided here. */
  readonly onUnexpectedError: (error: unknown) => void;
}

/** One request, with its URL taken apart. */
interface Call {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly path: string;
  readonly query: ReadonlyMap<string, string>;
}

interface Resource {
  /** Its methods, as the `Allow` header lists them. */
  readonly allow: string;
  readonly methods: ReadonlyMap<string, (call: Call) => void>;
}

const LIMITS_PREFIX = "/v1/limits/";

/**
 * Makes the request handler of a decision listener.
 *
 * @throws {RangeError} When the header shapes contradict each other.
 */
export function createHttpApi(decider: Decider, options: HttpApiOptions): RequestHandler {
  const fail = (res: ServerResponse, error: unknown): void => {
    options.onUnexpectedError(error);
    if (res.headersSent || res.writableEnded) res.destroy();
    else sendProblem(res, new Problem(500, "the sidecar met a fault of its own; see its log"));
  };
  const { clock } = options;
  const rateHeaders = createRateHeaders(options.headers ?? ["ietf"], options.wallMs);
  const parts = { decider, clock, rateHeaders, fail };
  const checks = new CheckApi({ ...parts, observeUs: options.observeUs ?? (() => {}) });
  const forward = options.forward && new ForwardApi({ ...parts, ...options.forward });
  const find = createResources(decider, checks, jsonResource(options, fail));
  return (req, res) => {
    try {
      if (req.url === "/v1/check" && req.method === "POST") {
        checks.check(req, res, 200);
        return;
      }
      const target = originForm(req.url ?? "/");
      if (req.method === "GET" && checks.checkByPlainTarget(res, target)) return;
      if (forward !== undefined && isForward(target)) forward.answer(req, res, target);
      else route(req, res, target, find);
    } catch (error) {
      fail(res, error);
    }
  };
}

function route(
  req: IncomingMessage,
  res: ServerResponse,
  target: string,
  find: (path: string) => Resource | undefined,
): void {
  const { method = "GET" } = req;
  const { path, queryText } = splitTarget(target);
  const resource = find(path);
  if (resource === undefined) {
    sendProblem(res, new Problem(404, `there is nothing at ${excerpt(path)}; see /openapi.json`));
    return;
  }
  const run = resource.methods.get(method);
  if (run === undefined) {
    if (method === "OPTIONS") sendOptions(res, resource.allow);
    else sendProblem(res, methodNotAllowed(method, excerpt(path), resource.allow));
    return;
  }
  const query = parseQuery(queryText);
  if (query instanceof Problem) sendProblem(res, query);
  else run({ req, res, path, query });
}

/** Clients that believe they speak to a proxy send the absolute form (RFC 9112, 3.2.2). */
function originForm(target: string): string {
  return target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?]*/i, "");
}

function splitTarget(target: string): { path: string; queryText: string } {
  const mark = target.indexOf("?");
  if (mark < 0) return { path: target, queryText: "" };
  return { path: target.slice(0, mark), queryText: target.slice(mark + 1) };
}

function jsonResource(
  { rateLimitJson }: HttpApiOptions,
  fail: (res: ServerResponse, error: unknown) => void,
): readonly [string, Resource][] {
  if (rateLimitJson === undefined) return [];
  const answer = ({ req, res }: Call): void => rateLimitJson(req, res, (error) => fail(res, error));
  return [["/json", resource({ POST: answer })]];
}

function createResources(
  decider: Decider,
  checks: CheckApi,
  more: readonly [string, Resource][],
): (path: string) => Resource | undefined {
  const openApi = asciiJson(openApiDocument());
  const paths = new Map<string, Resource>([
    [
      "/v1/check",
      resource({
        POST: withDenyStatus((call, status) => checks.check(call.req, call.res, status)),
        GET: withDenyStatus((call, status) => checks.checkByQuery(call.res, call.query, status)),
      }),
    ],
    ["/v1/check/batch", resource({ POST: ({ req, res }) => checks.batch(req, res) })],
    ["/v1/report", resource({ POST: ({ req, res }) => checks.report(req, res) })],
    ["/v1/limits", readable(({ res }) => sendLimits(res, decider))],
    ["/openapi.json", readable(({ res }) => sendJson(res, 200, openApi))],
    ...more,
  ]);
  const namedLimit = readable(({ res, path }) => sendLimit(res, decider, path));
  return (path) => paths.get(path) ?? (path.startsWith(LIMITS_PREFIX) ? namedLimit : undefined);
}

function resource(methods: Readonly<Record<string, (call: Call) => void>>): Resource {
  return {
    allow: [...Object.keys(methods), "OPTIONS"].join(", "),
    methods: new Map(Object.entries(methods)),
  };
}

/** A resource that is only read; Node leaves out the body of an answer to HEAD. */
function readable(run: (call: Call) => void): Resource {
  return resource({ GET: run, HEAD: run });
}

function withDenyStatus(run: (call: Call, denyStatus: number) => void): (call: Call) => void {
  return (call) => {
    const status = denyStatusIn(call.query);
    if (status instanceof Problem) sendProblem(call.res, status);
    else run(call, status);
  };
}

function sendLimits(res: ServerResponse, decider: Decider): void {
  sendJson(
    res,
    200,
    asciiJson({
      limits: decider.limits().map((limit) => describeLimit(limit, decider.standing(limit))),
    }),
  );
}

function sendLimit(res: ServerResponse, decider: Decider, path: string): void {
  const name = decodeSegment(path.slice(LIMITS_PREFIX.length));
  if (name === undefined) {
    sendProblem(res, badRequest("the name of the limit is not percent-encoded UTF-8"));
    return;
  }
  const limit = decider.limit(name);
  if (limit === undefined) sendProblem(res, unknownLimit(name, decider.limits()));
  else sendJson(res, 200, asciiJson(describeLimit(limit, decider.standing(limit))));
}
