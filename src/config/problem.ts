/** One thing that is wrong with a configuration, told so that its author can put it right. */

export interface Problem {
  /** The file, `flag --x`, or `environment variable X`. */
  readonly source: string;
  /** In a file: where, counted from 1. */
  readonly line: number | undefined;
  readonly column: number | undefined;
  /** The field, such as `limits[0].rate`; empty for the file as a whole. */
  readonly field: string;
  /** What is wrong and what would be accepted. */
  readonly message: string;
  /** The offending value, cut to a readable length; undefined when there is none. */
  readonly value: string | undefined;
}

const VALUE_LENGTH_MAX = 60;

/** `file:line:column: field: message; got value`, on one line without control characters. */
export function formatProblem(problem: Problem): string {
  const place = problem.line === undefined ? "" : `:${problem.line}:${problem.column ?? 1}`;
  const field = problem.field === "" ? "" : `${problem.field}: `;
  const got = problem.value === undefined ? "" : `; got ${problem.value}`;
  return escapeControls(`${problem.source}${place}: ${field}${problem.message}${got}`);
}

/** A value as it is shown in a problem: scalars as they are, passwords in URLs never. */
export function formatValue(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "a map";
  const text = typeof value === "string" ? JSON.stringify(withoutPassword(value)) : String(value);
  return text.length <= VALUE_LENGTH_MAX ? text : `${text.slice(0, VALUE_LENGTH_MAX - 1)}…`;
}

function withoutPassword(text: string): string {
  const scheme = text.indexOf("://");
  const host = text.lastIndexOf("@");
  if (scheme < 0 || host < scheme) return text;
  return `${text.slice(0, scheme + 3)}…${text.slice(host)}`;
}

function escapeControls(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not get out.
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
