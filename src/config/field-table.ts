/** All fields of the configuration as a Markdown table, made from the JSON Schema. */
import { configJsonSchema, type JsonSchema, mapOf } from "./json-schema.ts";

/** One row per field: name, type, default, meaning. Rows are in the order of the schema. */
export function fieldTable(): string {
  return [
    "| field | type | default | meaning |",
    "|---|---|---|---|",
    ...rowsOf(configJsonSchema(), ""),
  ].join("\n");
}

function rowsOf(map: JsonSchema, prefix: string): string[] {
  return Object.entries(map.properties ?? {}).flatMap(([name, schema]) => {
    const path = `${prefix}${name}`;
    const required = map.required?.includes(name) === true;
    const row = [`\`${path}\``, typeOf(schema), defaultOf(schema, required), meaningOf(schema)];
    const cells = row.map((cell) => cell.replaceAll("|", "\\|"));
    return [`| ${cells.join(" | ")} |`, ...rowsOf(insideOf(schema), insidePrefix(path, schema))];
  });
}

/** The map inside a field, if there is one: itself, an alternative of it, or a list's items. */
function insideOf(schema: JsonSchema): JsonSchema {
  return mapOf(schema.items ?? schema) ?? {};
}

function insidePrefix(path: string, schema: JsonSchema): string {
  return schema.items === undefined ? `${path}.` : `${path}[].`;
}

function typeOf(schema: JsonSchema): string {
  if (schema.title !== undefined) return schema.title;
  return schema.items === undefined ? "map" : "list of maps";
}

function defaultOf(schema: JsonSchema, required: boolean): string {
  if (required) return "required";
  if (schema.default === undefined || schema.properties !== undefined) return "";
  return `\`${JSON.stringify(schema.default).replaceAll('"', "")}\``;
}

function meaningOf(schema: JsonSchema): string {
  return schema.description ?? schema.items?.description ?? "";
}
