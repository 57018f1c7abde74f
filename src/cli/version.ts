/** `aliquot version`. */
import { existsSync, readFileSync } from "node:fs";
import { EXIT, type Verb } from "./verb.ts";

export const version: Verb = {
  name: "version",
  summary: "Print the versions of Aliquot and of Node.js.",
  operands: "",
  operandCount: [0, 0],
  options: [],
  examples: [["aliquot version", "aliquot 0.1.0 (node v20.20.2)"]],
  async run(_given, io) {
    io.stdout(`aliquot ${packageVersion()} (node ${process.version})\n`);
    return EXIT.ok;
  },
};

/** The version in package.json, which is one folder further up in the build than in the source. */
export function packageVersion(): string {
  const urls = ["../../package.json", "../../../package.json"].map(
    (path) => new URL(path, import.meta.url),
  );
  const url = urls.find((candidate) => existsSync(candidate));
  if (url === undefined) return "unknown";
  const { version: text } = JSON.parse(readFileSync(url, "utf8")) as { version: string };
  return text;
}
