import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import * as z from "zod";
import { fieldTable } from "../../src/config/field-table.ts";
import { configJsonSchema, fieldNamesAt, type JsonSchema } from "../../src/config/json-schema.ts";
import { environmentName, SETTINGS } from "../../src/config/settings.ts";
import { configOf, minimal, problemsOf } from "./loading.ts";

const EXAMPLES = ["examples/quickstart.yaml", "examples/redis.yaml"];

/** The printed schema as a checker, read back from its text. */
const checker = z.fromJSONSchema(JSON.parse(JSON.stringify(configJsonSchema())));

/** Every schema with its path, maps and lists opened. */
function fields(schema: JsonSchema, path = ""): [string, JsonSchema][] {
  const inside = schema.items ?? schema;
  const maps = [inside, ...(inside.anyOf ?? [])];
  return maps.flatMap(({ properties }) =>
    Object.entries(properties ?? {}).flatMap(([name, field]): [string, JsonSchema][] => [
      [`${path}.${name}`, field],
      ...fields(field, `${path}.${name}`),
    ]),
  );
}

describe("the examples", () => {
  it.each(EXAMPLES)("are accepted: %s", (path) => {
    expect(problemsOf(readFileSync(path, "utf8"), { path })).toEqual([]);
  });

  it.each(EXAMPLES)("cut in half are refused: %s", (path) => {
    const text = readFileSync(path, "utf8");
    expect(problemsOf(text.slice(0, text.length / 2))).not.toEqual([]);
  });

  it("for the quickstart listens where any user may, and without Redis", () => {
    const config = configOf(readFileSync("examples/quickstart.yaml", "utf8"));
    expect(config.redis).toBeUndefined();
    expect(config.listen.http.socket).toMatch(/^\/tmp\//);
    expect(config.listen.http.tcp).toEqual({ host: "127.0.0.1", port: 8790 });
    expect(config.listen.ops).toEqual({ host: "127.0.0.1", port: 8792 });
  });
});

describe("the JSON Schema", () => {
  it("is of draft 2020-12", () => {
    expect(configJsonSchema()).toMatchObject({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      required: ["version"],
      additionalProperties: false,
    });
  });

  it.each(EXAMPLES)("accepts the examples: %s", (path) => {
    expect(checker.safeParse(parse(readFileSync(path, "utf8"))).error).toBeUndefined();
  });

  it.each([
    ["a misspelt field", minimal("flet: x")],
    ["a misspelt field of a limit", minimal().replace("rate", "rat")],
    ["a rate without a span", minimal().replace("10/s", "'10'")],
    ["a duration without a unit", minimal("decision_timeout: '10'")],
    ["an address without a port", minimal("listen: { ops: localhost }")],
    ["an unknown mode", minimal().replace("10/s", "10/s, mode: fast")],
    ["a margin above 1", minimal("fallback: { margin: 2 }")],
    ["no limits", "version: 1\nlimits: []"],
  ])("refuses %s, as loading does", (_, text) => {
    expect(checker.safeParse(parse(text)).success).toBe(false);
    expect(problemsOf(text)).not.toEqual([]);
  });

  it("describes every field", () => {
    const all = fields(configJsonSchema());
    expect(all.length).toBeGreaterThan(60);
    const silent = all.filter(([, schema]) => {
      return (schema.description ?? schema.items?.description) === undefined;
    });
    expect(silent.map(([path]) => path)).toEqual([]);
  });

  it("has defaults that loading takes", () => {
    const { properties = {} } = configJsonSchema();
    const defaults = Object.entries(properties).filter(
      ([, schema]) => schema.default !== undefined,
    );
    const text = minimal(
      ...defaults.map(([name, schema]) => `${name}: ${JSON.stringify(schema.default)}`),
    );
    expect(defaults.length).toBeGreaterThan(5);
    expect(configOf(text).hash).toBe(configOf(minimal()).hash);
  });
});

describe("docs/configuration.md", () => {
  const text = readFileSync("docs/configuration.md", "utf8");

  it("holds the table that the schema gives", () => {
    const [, table] = /<!-- fields -->\n([\s\S]*)\n<!-- \/fields -->/.exec(text) ?? [];
    expect(table).toBe(fieldTable());
  });

  it("shows files that are accepted", () => {
    const blocks = [...text.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, block]) => block ?? "");
    expect(blocks.length).toBeGreaterThan(0);
    for (const block of blocks) expect(problemsOf(block)).toEqual([]);
  });
});

describe("settings from outside", () => {
  it("stand for fields of the schema", () => {
    for (const { path } of SETTINGS) {
      expect(fieldNamesAt(path.slice(0, -1))).toContain(path.at(-1));
    }
  });

  it("have a variable each, named after the flag", () => {
    expect(environmentName("redis-url")).toBe("ALIQUOT_REDIS_URL");
    expect(environmentName("listen-http-tcp")).toBe("ALIQUOT_LISTEN_HTTP_TCP");
    expect(new Set(SETTINGS.map(({ flag }) => environmentName(flag))).size).toBe(SETTINGS.length);
  });
});
