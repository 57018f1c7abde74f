import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { createDescriptorMatcher } from "../../src/envoy/descriptor-tree.ts";
import { PolicyTable } from "../../src/policy/policy-table.ts";
import { openApiDocument } from "../../src/server/openapi.ts";
import { createRateLimitJson } from "../../src/server/rate-limit-json.ts";
import { RateLimitService } from "../../src/server/rate-limit-service.ts";
import { policyOf } from "../policy/requests.ts";
import { ExactDecider, limitOf } from "./exact-decider.ts";
import { type Served, serve } from "./http-client.ts";

const operationShape = z.strictObject({
  operationId: z.string(),
  summary: z.string(),
  parameters: z
    .array(
      z.looseObject({
        name: z.string(),
        in: z.enum(["query", "path", "header"]),
        schema: z.looseObject({}),
      }),
    )
    .optional(),
  requestBody: z.looseObject({ content: z.record(z.string(), z.looseObject({})) }).optional(),
  responses: z.record(
    z.string().regex(/^[1-5][0-9]{2}$/),
    z.looseObject({
      description: z.string(),
      // An answer without a body has none.
      content: z
        .record(
          z.string(),
          z.looseObject({ schema: z.looseObject({ $ref: z.string().optional() }) }),
        )
        .optional(),
    }),
  ),
});

const documentShape = z.strictObject({
  openapi: z.string().regex(/^3\.1\.\d+$/),
  info: z.looseObject({ title: z.string(), version: z.string() }),
  servers: z.array(z.looseObject({ url: z.url() })),
  paths: z.record(
    z.string().startsWith("/"),
    z.partialRecord(z.enum(["get", "post", "put", "delete"]), operationShape),
  ),
  components: z.strictObject({ schemas: z.record(z.string(), z.looseObject({})) }),
});

const document = documentShape.parse(openApiDocument());
const text = JSON.stringify(document);

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);

/** A schema of the document as a validator, with its references made local. */
function validatorOf(name: string): z.ZodType {
  const local = text.replaceAll("#/components/schemas/", "#/$defs/");
  const { schemas } = documentShape.parse(JSON.parse(local)).components;
  return z.fromJSONSchema({
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $ref: `#/$defs/${name}`,
    $defs: schemas,
  } as Parameters<typeof z.fromJSONSchema>[0]);
}

let served: Served;

beforeAll(async () => {
  const overrides = new Map([["vip", limitOf("api", { burst: 1_000 })]]);
  const decider = new ExactDecider([
    limitOf("api", { overrides }),
    limitOf("shy", { shadow: true, burst: 1 }),
  ]);
  const observeUs = (): void => {};
  const service = new RateLimitService({
    decider,
    matcher: () => createDescriptorMatcher([]),
    rateHeaders: () => {},
  });
  served = await serve(decider, {
    forward: { policies: new PolicyTable([policyOf({ limit: "api" })]), observeUs },
    rateLimitJson: createRateLimitJson({ service, clock: { monotonicUs: () => 0 }, observeUs }),
  });
});

afterAll(() => served.stop());

describe("the OpenAPI document", () => {
  it("is what /openapi.json serves", async () => {
    const { status, json, headers } = await served.client.get("/openapi.json");
    expect(status).toBe(200);
    expect(headers["content-type"]).toBe("application/json");
    expect(json).toEqual(openApiDocument());
  });

  it("refers only to schemas that it has, and has none that nothing refers to", () => {
    const referred = [...text.matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name);
    expect(new Set(referred)).toEqual(new Set(Object.keys(document.components.schemas)));
  });

  it("gives each operation an id of its own and its path parameters", () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { path, operation } of operations) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
      expect(declared.map(({ name }) => name)).toEqual(inPath);
    }
  });

  it.each(operations)("has $method $path, which answers as documented", async (row) => {
    const { path, method, operation } = row;
    const target = path.replace("{name}", "api").replace("{policy}", "p");
    const query = path === "/v1/check" && method === "get" ? "?limit=api&key=k" : "";
    const body = JSON.stringify(
      {
        "/v1/check": { limit: "api", key: "k" },
        "/v1/check/batch": { requests: [{ limit: "api", key: "k" }, 7] },
        "/v1/report": { limit: "api", key: "k", cost: -1 },
        "/json": { domain: "d", descriptors: [{ entries: [{ key: "k" }] }] },
      }[path],
    );
    const sent = operation.requestBody === undefined ? undefined : body;
    const answer = await served.client.send(method.toUpperCase(), target + query, sent);
    expect(answer.status).toBe(200);
    const { content } = operation.responses["200"] ?? {};
    if (content === undefined) {
      expect([answer.text, answer.headers["content-type"]]).toEqual(["", undefined]);
      return;
    }
    const schema = content[answer.headers["content-type"] ?? ""]?.schema;
    expect(schema).toBeDefined();
    const name = /\/(\w+)$/.exec(schema?.$ref ?? "")?.[1];
    if (name !== undefined) validatorOf(name).parse(answer.json);
  });

  it.each([
    ["CheckAnswer", { limit: "api", key: "denied", cost: 1_000 }],
    ["CheckAnswer", { limit: "shy", key: "k", cost: 2 }],
    ["CheckAnswer", { limit: "api", key: "vip", cost: 999 }],
    [
      "CheckAnswer",
      {
        checks: [
          { limit: "api", key: "k" },
          { limit: "shy", key: "k" },
        ],
      },
    ],
    ["Problem", { limit: "apj", key: "k" }],
    ["Problem", []],
  ])("describes as %s the answer to %j", async (name, body) => {
    validatorOf(name).parse((await served.client.check(body)).json);
  });

  it("describes answers closely enough to notice a wrong one", () => {
    const validator = validatorOf("CheckAnswer");
    const good = {
      allowed: true,
      limit: "api",
      remaining: 1,
      reset_after_ms: 1,
      source: "local",
      degraded: false,
      shadow: false,
    };
    expect(validator.safeParse(good).success).toBe(true);
    for (const wrong of [{ remaining: -1 }, { source: "redis" }, { allowed: 1 }, { limit: null }]) {
      expect(validator.safeParse({ ...good, ...wrong }).success).toBe(false);
    }
  });
});
