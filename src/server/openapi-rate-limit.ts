/** Schemas of `POST /json`: the messages of Envoy's rate limit service in protobuf's JSON form. */
import { CODE_NAMES, UINT32_MAX, UNIT_NAMES } from "./rate-limit-messages.ts";
import { DESCRIPTORS_MAX } from "./rate-limit-service.ts";

const UINT32 = { type: "integer", minimum: 0, maximum: UINT32_MAX };

/** Numbers may come as texts, as protobuf writes those of 64 bits. */
const COUNT = { anyOf: [{ type: "integer", minimum: 0 }, { type: "string" }, { type: "null" }] };

const entry = {
  type: "object",
  required: ["key"],
  properties: { key: { type: "string" }, value: { type: "string" } },
};

const descriptor = {
  type: "object",
  required: ["entries"],
  properties: {
    entries: { type: "array", items: entry },
    limit: {
      description: "The caller's own limit, in place of the configured one.",
      type: ["object", "null"],
      properties: { requestsPerUnit: COUNT, unit: { enum: UNIT_NAMES } },
    },
    hitsAddend: { ...COUNT, description: "Cost of this descriptor; 0 asks without spending." },
  },
};

const status = {
  type: "object",
  required: ["code"],
  properties: {
    code: { enum: CODE_NAMES },
    currentLimit: {
      type: "object",
      properties: {
        requestsPerUnit: UINT32,
        unit: { enum: UNIT_NAMES },
        name: { type: "string" },
      },
    },
    limitRemaining: UINT32,
    durationUntilReset: { type: "string", pattern: "^[0-9]+s$" },
  },
};

export const RATE_LIMIT_SCHEMAS: Readonly<Record<string, object>> = {
  RateLimitRequest: {
    type: "object",
    description: "Names may be in snake_case as well.",
    required: ["domain", "descriptors"],
    properties: {
      domain: { type: "string" },
      descriptors: { type: "array", items: descriptor, minItems: 1, maxItems: DESCRIPTORS_MAX },
      hitsAddend: { ...COUNT, description: "Cost of every other descriptor; 0 counts as 1." },
    },
  },
  RateLimitResponse: {
    type: "object",
    description: "What is 0 or empty is left out.",
    required: ["overallCode", "statuses"],
    properties: {
      overallCode: { enum: CODE_NAMES },
      statuses: {
        type: "array",
        items: status,
        description: "One per descriptor, in the order of the request.",
      },
      responseHeadersToAdd: {
        type: "array",
        items: {
          type: "object",
          required: ["key", "value"],
          properties: { key: { type: "string" }, value: { type: "string" } },
        },
      },
      dynamicMetadata: { type: "object" },
    },
  },
};
