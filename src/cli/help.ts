/** The help texts, made from the verbs themselves. */
import { alignColumns } from "./columns.ts";
import { optionsOf } from "./parse.ts";
import type { Verb } from "./verb.ts";

const EXIT_CODES =
  "Exit codes: 0 fine, 1 failure, 2 usage or invalid configuration, 3 denied, 4 unreachable.";

/** Help of one verb: usage, flags, examples. */
export function verbHelp(verb: Verb): string {
  const operands = verb.operands === "" ? "" : ` ${verb.operands}`;
  const options = optionsOf(verb).map(({ name, value, help }) => [
    value === undefined ? `--${name}` : `--${name} ${value}`,
    help,
  ]);
  const examples = verb.examples.map(([command, does]) => [command, does]);
  return [
    `aliquot ${verb.name}${operands} [flags]`,
    "",
    `  ${verb.summary}`,
    "",
    "Flags:",
    ...alignColumns(options, "  "),
    "",
    "Examples:",
    ...alignColumns(examples, "  "),
    "",
    EXIT_CODES,
    "",
  ].join("\n");
}

/** Help of the program: the verbs. */
export function programHelp(verbs: readonly Verb[]): string {
  return [
    "aliquot [verb] [flags]",
    "",
    "  A rate limiter that runs beside every pod and keeps one limit for the whole fleet.",
    "",
    "Verbs:",
    ...alignColumns(
      verbs.map(({ name, summary }) => [name, summary]),
      "  ",
    ),
    "",
    "aliquot VERB --help tells more about each. Without a verb: serve.",
    EXIT_CODES,
    "",
  ].join("\n");
}
