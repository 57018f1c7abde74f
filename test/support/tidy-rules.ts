/**
 * Rules about the project's text that a formatter and a linter cannot know.
 *
 * Each is a function from files to findings, so that it can be held against the project and against
 * a planted violation alike. A finding says what to do instead.
 */
import { blanked, type ProjectFile } from "./project-files.ts";

export interface Finding {
  readonly path: string;
  /** From 1; 0 when the whole file is meant. */
  readonly line: number;
  readonly says: string;
}

export type Rule = (files: readonly ProjectFile[]) => Finding[];

export const COLUMNS_MAX = 100;
export const FILE_LINES_MAX = 300;
export const FUNCTION_LINES_MAX = 70;

const isCode = ({ path }: ProjectFile): boolean => /\.(ts|mjs|lua|grit|sh)$/.test(path);
const isLua = ({ path }: ProjectFile): boolean => path.endsWith(".lua");
const isMarkdown = ({ path }: ProjectFile): boolean => path.endsWith(".md");

/** Runs a check over each line of each file that the filter lets through. */
function eachLine(
  files: readonly ProjectFile[],
  check: (line: string, file: ProjectFile) => string | undefined,
  linesOf: (file: ProjectFile) => string = ({ text }) => text,
): Finding[] {
  return files.flatMap((file) =>
    linesOf(file)
      .split("\n")
      .flatMap((line, index) => {
        const says = check(line, file);
        return says === undefined ? [] : [{ path: file.path, line: index + 1, says }];
      }),
  );
}

/** Not to be broken over lines: the sentence that names a test, a pattern, a text with values. */
const UNBREAKABLE = /^\s*(it|describe|test)\(|^\s*\/.*\/[a-z]*;$|^\s*(const \w+ = )?`.*`[;,]?$/;

/** A web address or a name of Envoy's types cannot be broken, and neither can a row of a table. */
export const longLines: Rule = (files) =>
  eachLine(
    files.filter((file) => isCode(file) || isMarkdown(file)),
    (line, file) => {
      const unbroken = /https:\/\/|type\.googleapis\.com\//.test(line) || UNBREAKABLE.test(line);
      const excused = unbroken || (isMarkdown(file) && line.startsWith("|"));
      if (line.length <= COLUMNS_MAX || excused) return undefined;
      return `${line.length} columns, at most ${COLUMNS_MAX}`;
    },
  );

export const raggedText: Rule = (files) => [
  ...eachLine(
    files.filter(({ path }) => !path.endsWith(".csv")),
    (line) => {
      if (/[ \t\r]$/.test(line)) return "white space at the end of the line";
      return line.includes("\t") ? "a tab; indent with spaces" : undefined;
    },
  ),
  ...files
    .filter(({ text }) => text !== "" && !text.endsWith("\n"))
    .map(({ path }) => ({ path, line: 0, says: "the last line does not end" })),
];

/** @param excused - Long files with the reason why each is better whole. */
export function longFiles(excused: Readonly<Record<string, string>>): Rule {
  return (files) =>
    files.filter(isCode).flatMap(({ path, text }) => {
      const lines = text.split("\n").length - 1;
      if (lines <= FILE_LINES_MAX || excused[path] !== undefined) return [];
      return [{ path, line: 0, says: `${lines} lines, at most ${FILE_LINES_MAX}: split it` }];
    });
}

/** TypeScript's functions are measured by the linter; Lua's have none but this. */
export const longLuaFunctions: Rule = (files) =>
  files.filter(isLua).flatMap((file) => {
    const lines = blanked(file, "comments").split("\n");
    return lines.flatMap((line, index) => {
      const indent = /^(\s*).*\bfunction\b/.exec(line)?.[1];
      if (indent === undefined || /\bend\b/.test(line)) return [];
      const length = lines.slice(index).findIndex((each) => each.startsWith(`${indent}end`)) + 1;
      if (length <= FUNCTION_LINES_MAX) return [];
      return [{ path: file.path, line: index + 1, says: `a function of ${length} lines` }];
    });
  });

const LEFTOVER = new RegExp(`\\b(${["TO" + "DO", "FIX" + "ME", "X" + "XX"].join("|")})\\b`);

export const leftovers: Rule = (files) =>
  eachLine(files, (line) => {
    const found = LEFTOVER.exec(line)?.[1];
    return found === undefined ? undefined : `${found}: do it, or say in docs/ why not`;
  });

export interface Ban {
  readonly call: RegExp;
  readonly instead: string;
  /** Where the ban holds. */
  readonly within: RegExp;
  /** Files in which the call belongs, each with the reason. */
  readonly except: Readonly<Record<string, string>>;
}

/** Calls in code; what comments and strings say is not a call. */
export function bannedCalls(bans: readonly Ban[]): Rule {
  return (files) =>
    bans.flatMap(({ call, instead, within, except }) =>
      eachLine(
        files.filter(({ path }) => within.test(path) && except[path] === undefined),
        (line) => (call.test(line) ? `${call.source} is banned: ${instead}` : undefined),
        (file) => blanked(file, "comments and strings"),
      ),
    );
}

export interface ForeignWord {
  readonly pattern: RegExp;
  readonly reason: string;
}

export function foreignWords(words: readonly ForeignWord[], except: readonly string[]): Rule {
  return (files) =>
    words.flatMap(({ pattern, reason }) =>
      eachLine(
        files.filter(({ path }) => !except.includes(path)),
        (line) => (pattern.test(line) ? reason : undefined),
      ),
    );
}

/**
 * Synonyms that the glossary rules out, as whole words, also inside identifiers of any case.
 *
 * @param ruledOut - Each ruled-out word and the word to use.
 * @param names - Names that others gave, in which the word may stand.
 */
export function synonyms(ruledOut: ReadonlyMap<string, string>, names: readonly RegExp[]): Rule {
  return (files) =>
    eachLine(files, (line) => {
      const ours = names.reduce((text, name) => text.replace(name, " "), line);
      const word = wordsOf(ours).find((each) => ruledOut.has(each));
      return word === undefined ? undefined : `"${word}": say ${ruledOut.get(word)}`;
    });
}

function wordsOf(text: string): string[] {
  const split = text.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return split.match(/[a-z]+/g) ?? [];
}

/** What the ports take from the core are types: a port is a shape, it has nothing to run. */
export const portsImportTypes: Rule = (files) =>
  eachLine(
    files.filter(({ path }) => path.startsWith("src/ports/")),
    (line) =>
      /^import (?!type )/.test(line) ? "a port imports types only: import type { … }" : undefined,
    (file) => blanked(file, "comments"),
  );
