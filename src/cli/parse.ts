/** Reads a verb's arguments; what is unknown is refused with the closest known name. */
import { parseArgs } from "node:util";
import { closest } from "../config/closest.ts";
import { type Given, type Option, UsageError, type Verb } from "./verb.ts";

/** Asked for instead of the verb itself. */
export const HELP = "help";

const HELP_OPTION: Option = { name: HELP, value: undefined, help: "show this and exit" };

/** All options of a verb, `--help` included. */
export function optionsOf(verb: Verb): readonly Option[] {
  return [...verb.options, HELP_OPTION];
}

/** @throws {UsageError} */
export function parseVerb(verb: Verb, args: readonly string[]): Given {
  const options = optionsOf(verb);
  const { tokens } = parseArgs({
    args: [...args],
    options: {
      ...Object.fromEntries(options.map(({ name, value }) => [name, { type: typeOf(value) }])),
      [HELP]: { type: "boolean", short: "h" },
    },
    allowPositionals: true,
    // Not strict: an unknown flag should be answered with the one that was meant.
    strict: false,
    tokens: true,
  });
  const operands: string[] = [];
  const flags = new Map<string, string>();
  for (const token of tokens) {
    if (token.kind === "positional") operands.push(token.value);
    if (token.kind !== "option") continue;
    const option = options.find(({ name }) => name === token.name);
    if (option === undefined) throw unknownFlag(token.rawName, options);
    flags.set(option.name, givenValue(option, token.value, token.inlineValue === true));
  }
  if (!flags.has(HELP)) checkCount(verb, operands);
  return { operands, flags };
}

function typeOf(value: string | undefined): "string" | "boolean" {
  return value === undefined ? "boolean" : "string";
}

function givenValue(option: Option, value: string | undefined, inline: boolean): string {
  if (option.value === undefined) return value ?? "true";
  const forgotten = value === undefined || (!inline && value.startsWith("--"));
  if (forgotten) throw new UsageError(`needs a value: --${option.name} ${option.value}`);
  return value;
}

function unknownFlag(rawName: string, options: readonly Option[]): UsageError {
  const guess = closest(
    rawName.replace(/^-+/, ""),
    options.map(({ name }) => name),
  );
  return new UsageError(
    `unknown flag ${rawName}${guess === undefined ? "" : `; did you mean --${guess}?`}`,
  );
}

function checkCount(verb: Verb, operands: readonly string[]): void {
  const [least, most] = verb.operandCount;
  if (operands.length < least) {
    throw new UsageError(`needs ${verb.operands}`);
  }
  if (operands.length > most) {
    const surplus = JSON.stringify(operands[most]);
    throw new UsageError(`takes ${verb.operands || "no operands"}, and ${surplus} is one too many`);
  }
}
