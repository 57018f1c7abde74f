/** `aliquot openapi`: the description of the HTTP API, for client generators. */
import { openApiDocument } from "../server/openapi.ts";
import { EXIT, type Verb } from "./verb.ts";

export const openapi: Verb = {
  name: "openapi",
  summary: "Print the OpenAPI 3.1 document of the HTTP API.",
  operands: "",
  operandCount: [0, 0],
  options: [],
  examples: [["aliquot openapi > openapi.json", "the same as GET /openapi.json"]],
  async run(_given, io) {
    io.stdout(`${JSON.stringify(openApiDocument(), undefined, 2)}\n`);
    return EXIT.ok;
  },
};
