/** Verbs that the contract names and that are not there yet: they say so. */
import { EXIT, type Verb } from "./verb.ts";

function notYet(name: string, summary: string): Verb {
  return {
    name,
    summary: `${summary} Not yet available.`,
    operands: "",
    operandCount: [0, Number.POSITIVE_INFINITY],
    options: [],
    examples: [[`aliquot ${name}`, "not yet available"]],
    async run(_given, io) {
      io.stderr(`aliquot ${name}: not yet available\n`);
      return EXIT.usage;
    },
  };
}

export const top: Verb = notYet("top", "Watch a running sidecar.");
