/**
 * A YAML text as values with positions, so that a problem found later can name line and column.
 *
 * YAML 1.2 as the `yaml` package reads it: `off` and `no` are words, `<<` is an ordinary name.
 * Duplicate names are problems, and the rest of the file is still read; after any other fault of
 * syntax the values are not worth looking at, because half of them would be guesses.
 */
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
} from "yaml";
import type { Problem } from "./problem.ts";
import type { Path } from "./tree.ts";

/** Longest file that is read: what a ConfigMap can hold. */
export const FILE_BYTES_MAX: number = 1024 * 1024;

/** Most values that aliases may multiply into, so that a small file cannot become a huge one. */
const ALIASES_MAX = 100;

const SYNTAX_FAULTS_MAX = 3;

export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface SourceFile {
  readonly path: string;
  /** Plain values; undefined when the text could not be read. */
  readonly value: unknown;
  readonly problems: readonly Problem[];
  /** Where the value at a path begins, or its name; the nearest value around it when not there. */
  position(path: Path, part: "name" | "value"): Position;
}

export function parseSourceFile(path: string, text: string): SourceFile {
  const parsed = parseYaml(path, text);
  const unreadable = (...problems: Problem[]): SourceFile => {
    return { path, value: undefined, problems, position: () => ({ line: 1, column: 1 }) };
  };
  if (parsed.document === undefined) return unreadable(...parsed.problems);
  const { document, problems, at } = parsed;
  try {
    const value: unknown = document.toJS({ maxAliasCount: ALIASES_MAX });
    return { path, value, problems, position: (to, part) => at(offsetOf(document, to, part)) };
  } catch (error) {
    // Too deep for the stack, or aliases that multiply.
    return unreadable(unusable(path, text, at, error));
  }
}

export interface ParsedYaml {
  readonly document: Document;
  /** Duplicate names; anything else makes a text unreadable. */
  readonly problems: readonly Problem[];
  at(offset: number): Position;
}

interface UnreadableYaml {
  readonly document?: undefined;
  readonly problems: readonly Problem[];
}

/** @returns The parsed text, or the problems that make it unreadable. */
export function parseYaml(path: string, text: string): ParsedYaml | UnreadableYaml {
  if (Buffer.byteLength(text) > FILE_BYTES_MAX) {
    return { problems: [problemAt(path, `must be at most ${FILE_BYTES_MAX} bytes long`)] };
  }
  const lines = new LineCounter();
  const at = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  try {
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
    // One fault of syntax brings others in its train; the first few tell enough.
    const syntax = [...document.errors, ...document.warnings].filter(isSyntax);
    const faults = syntax.length > 0 ? syntax.slice(0, SYNTAX_FAULTS_MAX) : document.errors;
    const problems = faults.map(({ code, message, pos: [start] }) =>
      problemAt(path, explain(code, message, text.slice(start)), at(start)),
    );
    return syntax.length > 0 ? { problems } : { document, problems, at };
  } catch (error) {
    return { problems: [unusable(path, text, at, error)] };
  }
}

function unusable(
  path: string,
  text: string,
  at: (offset: number) => Position,
  error: unknown,
): Problem {
  const reason = error instanceof Error ? error.message : String(error);
  const alias = /Unresolved alias.*: (\S+)$/.exec(reason)?.[1];
  const place = alias === undefined ? 0 : Math.max(0, text.indexOf(`*${alias}`));
  return problemAt(path, `is not usable YAML: ${reason}`, at(place));
}

function problemAt(path: string, message: string, position?: Position): Problem {
  return {
    source: path,
    line: position?.line,
    column: position?.column,
    field: "",
    message,
    value: undefined,
  };
}

function isSyntax(fault: { code: string }): boolean {
  return fault.code !== "DUPLICATE_KEY";
}

function explain(code: string, message: string, rest: string): string {
  if (code === "DUPLICATE_KEY") {
    return `duplicate field ${JSON.stringify(rest.split(/[:\s]/, 1)[0])}; each may be given once`;
  }
  if (code === "MULTIPLE_DOCS") return "must hold one YAML document, not several";
  return `is not valid YAML: ${message}`;
}

function offsetOf(document: Document, path: Path, part: "name" | "value"): number {
  let node: unknown = document.contents;
  let offset = startOf(node) ?? 0;
  for (const [depth, step] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document);
    if (isSeq(node)) {
      node = node.items[Number(step)];
    } else if (isMap(node)) {
      const pair: Pair | undefined = node.items.findLast((item) => nameOf(item.key) === step);
      if (pair === undefined) return offset;
      const ofName = startOf(pair.key);
      if (part === "name" && depth === path.length - 1) return ofName ?? offset;
      node = pair.value;
      // `rate:` with nothing behind it: the place where the value is missing is the name's line.
      offset = ofName ?? offset;
      if (isScalar(node) && node.source === "") return offset;
    } else {
      return offset;
    }
    offset = startOf(node) ?? offset;
  }
  return offset;
}

function nameOf(key: unknown): string {
  return String(isScalar(key) ? key.value : key);
}

function startOf(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0];
}
