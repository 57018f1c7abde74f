/** The JSON Schema of the configuration file (draft 2020-12), made from the schema itself. */
import * as z from "zod";
import { fileSchema } from "./schema.ts";
import type { Path } from "./tree.ts";

/** The parts of JSON Schema that the configuration uses. */
export interface JsonSchema {
  readonly title?: string;
  readonly description?: string;
  readonly type?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
}

let made: JsonSchema | undefined;

/** Editors and other tools can check a file against it; `loadConfig` checks more. */
export function configJsonSchema(): JsonSchema {
  made ??= z.toJSONSchema(fileSchema, {
    target: "draft-2020-12",
    io: "input",
  }) as unknown as JsonSchema;
  return made;
}

/** Names that the map at a path may hold. */
export function fieldNamesAt(path: Path): readonly string[] {
  let schema: JsonSchema | undefined = configJsonSchema();
  for (const step of path) {
    schema = typeof step === "number" ? schema?.items : mapOf(schema)?.properties?.[step];
  }
  return Object.keys(mapOf(schema)?.properties ?? {});
}

/** The schema itself, or that one of its alternatives that is a map. */
export function mapOf(schema: JsonSchema | undefined): JsonSchema | undefined {
  if (schema?.anyOf === undefined) return schema;
  return schema.anyOf.find((alternative) => alternative.properties !== undefined);
}
