/** The OpenAPI 3.1 document of the decision API. A test asks every operation that it lists. */
import { BODY_BYTES_MAX } from "./json-body.ts";
import { RATE_LIMIT_SCHEMAS } from "./openapi-rate-limit.ts";
import { SCHEMAS } from "./openapi-schemas.ts";

const schema = (name: string): object => ({ $ref: `#/components/schemas/${name}` });
const json = (name: string): object => ({ "application/json": { schema: schema(name) } });

const problem = (description: string): object => ({
  description,
  content: { "application/problem+json": { schema: schema("Problem") } },
});

const BAD_REQUEST = problem("The request is malformed; nothing was spent.");
const UNKNOWN_LIMIT = problem("The limit is not configured; names the closest one.");
const TOO_LARGE = problem(`The body has more than ${BODY_BYTES_MAX} bytes; nothing was spent.`);
const CLOSED = problem("The store is away and a limit of the check is closed meanwhile.");

const header = (description: string): object => ({ description, schema: { type: "string" } });

const RATE_HEADERS = {
  "RateLimit-Policy": header("draft-ietf-httpapi-ratelimit-headers-10; `q` is the burst."),
  RateLimit: header("draft-ietf-httpapi-ratelimit-headers-10: `r` remaining, `t` seconds."),
  "Retry-After": header("Whole seconds, at least 1; only when denied and waiting can help."),
};

const DENY_STATUS = {
  name: "deny_status",
  in: "query",
  description: "Status of a denial; its headers and body are the same.",
  schema: { enum: [200, 429], default: 200 },
};

const CHECK_ANSWERS = {
  200: {
    description: "A decision, allowed or denied.",
    headers: RATE_HEADERS,
    content: json("CheckAnswer"),
  },
  400: BAD_REQUEST,
  404: UNKNOWN_LIMIT,
  429: {
    description: "Denied, with `deny_status=429`.",
    headers: RATE_HEADERS,
    content: json("CheckAnswer"),
  },
  503: CLOSED,
};

const FORWARD_DENIED = {
  description: "Denied; the status is the one that `X-RateLimit-Deny-Status` asks for.",
  headers: RATE_HEADERS,
  content: { "application/problem+json": { schema: schema("Problem") } },
};

/** The same for every method; OpenAPI has no word for that. */
const forward = {
  operationId: "forward",
  summary: "Decide a request that a proxy asks about (any method, any path below)",
  parameters: [
    {
      name: "policy",
      in: "path",
      required: true,
      description: "Name of a policy, or `*` for the first that matches the original request.",
      schema: { type: "string" },
    },
    ...["X-Forwarded-Method", "X-Forwarded-Uri", "X-Original-Method", "X-Original-URI"].map(
      (name) => ({
        name,
        in: "header",
        description: "The original request; without these, the request itself.",
        schema: { type: "string" },
      }),
    ),
    {
      name: "X-RateLimit-Deny-Status",
      in: "header",
      description: "Status of a denial.",
      schema: { enum: ["401", "403", "429"], default: "429" },
    },
  ],
  responses: {
    200: { description: "The request may pass; no body.", headers: RATE_HEADERS },
    400: BAD_REQUEST,
    401: FORWARD_DENIED,
    403: FORWARD_DENIED,
    404: problem("The policy is not configured; names the closest one."),
    429: FORWARD_DENIED,
    503: CLOSED,
  },
};

function queryField(name: string, required: boolean, type: string): object {
  return { name, in: "query", required, schema: { type } };
}

const paths = {
  "/v1/check": {
    post: {
      operationId: "check",
      summary: "Decide one check, or several together",
      parameters: [DENY_STATUS],
      requestBody: { required: true, content: json("CheckBody") },
      responses: { ...CHECK_ANSWERS, 413: TOO_LARGE },
    },
    get: {
      operationId: "checkByQuery",
      summary: "Decide one check (this spends tokens, although it is a GET)",
      parameters: [
        queryField("limit", true, "string"),
        queryField("key", true, "string"),
        queryField("cost", false, "integer"),
        DENY_STATUS,
      ],
      responses: CHECK_ANSWERS,
    },
  },
  "/v1/check/batch": {
    post: {
      operationId: "checkBatch",
      summary: "Decide independent checks",
      requestBody: { required: true, content: json("BatchBody") },
      responses: {
        200: { description: "One result per request, in order.", content: json("BatchAnswer") },
        400: BAD_REQUEST,
        413: TOO_LARGE,
      },
    },
  },
  "/v1/report": {
    post: {
      operationId: "report",
      summary: "Debit or refund without asking; may drive a bucket into debt",
      requestBody: { required: true, content: json("ReportBody") },
      responses: {
        200: { description: "The resulting state.", content: json("Decision") },
        400: BAD_REQUEST,
        404: UNKNOWN_LIMIT,
        413: TOO_LARGE,
      },
    },
  },
  "/v1/forward/@{policy}": { get: forward },
  "/json": {
    post: {
      operationId: "shouldRateLimit",
      summary: "Envoy's rate limit service in protobuf's JSON form",
      requestBody: { required: true, content: json("RateLimitRequest") },
      responses: {
        200: { description: "The overall code is OK.", content: json("RateLimitResponse") },
        400: BAD_REQUEST,
        413: TOO_LARGE,
        429: { description: "It is OVER_LIMIT.", content: json("RateLimitResponse") },
        503: CLOSED,
      },
    },
  },
  "/v1/limits": {
    get: {
      operationId: "listLimits",
      summary: "The limits in force",
      responses: { 200: { description: "In configuration order.", content: json("Limits") } },
    },
  },
  "/v1/limits/{name}": {
    get: {
      operationId: "getLimit",
      summary: "One limit in force",
      parameters: [{ name: "name", in: "path", required: true, schema: { type: "string" } }],
      responses: {
        200: { description: "The limit.", content: json("Limit") },
        400: BAD_REQUEST,
        404: UNKNOWN_LIMIT,
      },
    },
  },
  "/openapi.json": {
    get: {
      operationId: "openApi",
      summary: "This document",
      responses: {
        200: {
          description: "OpenAPI 3.1.",
          content: { "application/json": { schema: { type: "object" } } },
        },
      },
    },
  },
};

const DESCRIPTION = `
A rate limiter beside every pod that keeps one limit for the whole fleet.

A denial is a decision and is answered with 200 unless \`deny_status=429\` asks otherwise, so that
"denied" can never be taken for "broken". Bodies are UTF-8 whatever Content-Type says; unknown
fields are ignored; of a field that is given twice the last one counts. Keys are taken as given.
HEAD on a path that decides is answered 405, OPTIONS 204 with \`Allow\`; neither spends anything.
`.trim();

/** The OpenAPI 3.1 document, as an object to be serialised. */
export function openApiDocument(): object {
  return {
    openapi: "3.1.0",
    info: { title: "Aliquot decision API", version: "1.0.0", description: DESCRIPTION },
    servers: [{ url: "http://127.0.0.1:8790", description: "The sidecar in the same pod" }],
    paths,
    components: { schemas: { ...SCHEMAS, ...RATE_LIMIT_SCHEMAS } },
  };
}
