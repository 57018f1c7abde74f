/** `aliquot schema`: the JSON Schema of the configuration file, for editors and pipelines. */
import { fieldTable } from "../config/field-table.ts";
import { configJsonSchema } from "../config/json-schema.ts";
import { EXIT, UsageError, type Verb } from "./verb.ts";

export const schema: Verb = {
  name: "schema",
  summary: "Print the JSON Schema of the configuration file.",
  operands: "",
  operandCount: [0, 0],
  options: [{ name: "format", value: "NAME", help: "json, or markdown for a table of all fields" }],
  examples: [
    ["aliquot schema > aliquot.schema.json", "then, as the first line of a configuration:"],
    ["# yaml-language-server: $schema=aliquot.schema.json", "completion in many editors"],
  ],
  async run({ flags }, io) {
    const format = flags.get("format") ?? "json";
    if (format === "json") io.stdout(`${JSON.stringify(configJsonSchema(), undefined, 2)}\n`);
    else if (format === "markdown") io.stdout(`${fieldTable()}\n`);
    else throw new UsageError(`--format must be json or markdown; got ${format}`);
    return EXIT.ok;
  },
};
