/** Schemas of the OpenAPI document: the bodies of the decision API in JSON Schema 2020-12. */
import { BATCH_REQUESTS_MAX, CHECKS_MAX, COST_MAX, KEY_BYTES_MAX } from "./check-body.ts";

const ref = (name: string): object => ({ $ref: `#/components/schemas/${name}` });

const limitName = {
  type: "string",
  description: "Name of a configured limit.",
  examples: ["api-per-user"],
};

const key = {
  type: "string",
  minLength: 1,
  maxLength: KEY_BYTES_MAX,
  description:
    "What the request is counted under: an opaque string, compared byte for byte, of 1 to " +
    `${KEY_BYTES_MAX} bytes in UTF-8. Send an address without its port.`,
  examples: ["user-42"],
};

const cost = {
  type: "integer",
  minimum: 0,
  maximum: COST_MAX,
  default: 1,
  description: "Tokens to spend. 0 peeks: it answers what a cost of 1 would get, spending nothing.",
};

const milliseconds = (description: string): object => ({
  type: "integer",
  minimum: 0,
  description,
});

const decisionProperties = {
  allowed: { type: "boolean", description: "The verdict to act on." },
  limit: { type: "string", description: "The limit that this decision is about." },
  remaining: {
    type: "integer",
    minimum: 0,
    description: "Whole tokens of the fleet-wide limit, as this pod sees them.",
  },
  reset_after_ms: milliseconds("Time until the bucket is full."),
  retry_after_ms: milliseconds(
    "0 when allowed; else the shortest wait after which the same check could pass. Absent when " +
      "it never can (`reason` is `cost_exceeds_burst`).",
  ),
  source: {
    enum: ["local", "store", "fallback"],
    description: "Decided in the pod, by a reply of the store, or while it is out of reach.",
  },
  degraded: { type: "boolean", description: "The fallback is active." },
  shadow: {
    type: "boolean",
    description: "A denial was not enforced; then `allowed` and `would_deny` are true.",
  },
  would_deny: { const: true, description: "Present when a denial was not enforced." },
  reason: {
    enum: ["limit_exceeded", "cost_exceeds_burst", "store_unavailable"],
    description: "Present on a denial, enforced or not.",
  },
};

const decisionRequired = [
  "allowed",
  "limit",
  "remaining",
  "reset_after_ms",
  "source",
  "degraded",
  "shadow",
];

const bucketProperties = {
  rate_per_second: { type: "number", description: "Rate for the whole fleet, rounded." },
  refill: {
    type: "object",
    description: "The exact rate: `tokens` per `period_us` microseconds.",
    required: ["tokens", "period_us"],
    properties: { tokens: { type: "integer" }, period_us: { type: "integer" } },
  },
  burst: { type: "integer", minimum: 1, description: "Burst for the whole fleet." },
};

const limitProperties = {
  name: limitName,
  ...bucketProperties,
  mode: { enum: ["hybrid", "leased", "exact"] },
  reconcile_interval_ms: { type: "number" },
  fallback: {
    type: "object",
    required: ["policy", "margin", "max_pods"],
    properties: {
      policy: { enum: ["local", "open", "closed"] },
      margin: { type: "number" },
      max_pods: { type: "integer" },
    },
  },
  shadow: { type: "boolean" },
  overrides: {
    type: "array",
    description: "Rates and bursts that hold for single keys.",
    items: {
      type: "object",
      required: ["key", "rate_per_second", "refill", "burst"],
      properties: { key: { type: "string" }, ...bucketProperties },
    },
  },
};

export const SCHEMAS: Readonly<Record<string, object>> = {
  Check: {
    type: "object",
    required: ["limit", "key"],
    properties: { limit: limitName, key, cost },
  },
  Checks: {
    type: "object",
    description: "Decided together, all or nothing: one denial and nothing is spent.",
    required: ["checks"],
    properties: {
      checks: { type: "array", minItems: 1, maxItems: CHECKS_MAX, items: ref("Check") },
    },
  },
  CheckBody: { oneOf: [ref("Check"), ref("Checks")] },
  BatchBody: {
    type: "object",
    required: ["requests"],
    properties: {
      requests: {
        type: "array",
        minItems: 1,
        maxItems: BATCH_REQUESTS_MAX,
        items: ref("CheckBody"),
        description: "Independent of each other.",
      },
    },
  },
  ReportBody: {
    type: "object",
    required: ["limit", "key"],
    properties: {
      limit: limitName,
      key,
      cost: {
        ...cost,
        minimum: -COST_MAX,
        description: "Tokens to debit whatever the bucket holds; negative refunds.",
      },
    },
  },
  Decision: {
    type: "object",
    required: decisionRequired,
    properties: decisionProperties,
  },
  CheckAnswer: {
    type: "object",
    description: "The decision of the tightest check.",
    required: decisionRequired,
    properties: {
      ...decisionProperties,
      results: {
        type: "array",
        items: ref("Decision"),
        description: "With `checks` only: one decision per check, in order.",
      },
    },
  },
  BatchAnswer: {
    type: "object",
    required: ["results"],
    properties: {
      results: {
        type: "array",
        description: "One per request, in order.",
        items: {
          anyOf: [
            ref("CheckAnswer"),
            { type: "object", required: ["error"], properties: { error: ref("Problem") } },
          ],
        },
      },
    },
  },
  Limit: {
    type: "object",
    required: Object.keys(limitProperties),
    properties: limitProperties,
  },
  Limits: {
    type: "object",
    required: ["limits"],
    properties: { limits: { type: "array", items: ref("Limit") } },
  },
  Problem: {
    type: "object",
    description: "RFC 9457 problem details.",
    required: ["type", "title", "status", "detail"],
    properties: {
      type: { type: "string" },
      title: { type: "string" },
      status: { type: "integer" },
      detail: { type: "string" },
      "violated-policies": { type: "array", items: { type: "string" } },
    },
  },
};
