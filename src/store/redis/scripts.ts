/**
 * Loads the Lua scripts. A line `-- @include path` is replaced by that file, each file once per
 * script, so that the rules shared by all scripts are written once. Paths are relative to the file
 * that holds the line.
 */
import { readFileSync } from "node:fs";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";

/** A script and the keys and arguments it takes; its header tells what they are. */
export interface ScriptShape {
  readonly file: string;
  readonly keys: number;
  /** More keys may follow, one for each entry of a batch. */
  readonly moreKeys: boolean;
  readonly args: number;
}

export type ScriptName = "reconcile" | "take" | "lease" | "join" | "leave";

export const SCRIPTS: Readonly<Record<ScriptName, ScriptShape>> = {
  reconcile: { file: "reconcile.lua", keys: 2, moreKeys: true, args: 2 },
  take: { file: "take.lua", keys: 1, moreKeys: true, args: 2 },
  lease: { file: "lease.lua", keys: 1, moreKeys: true, args: 2 },
  join: { file: "join.lua", keys: 3, moreKeys: false, args: 3 },
  leave: { file: "leave.lua", keys: 1, moreKeys: false, args: 1 },
};

export const SCRIPT_NAMES: readonly ScriptName[] = Object.keys(SCRIPTS) as ScriptName[];

/** Reads a file below the folder of scripts; throws when there is none. */
export type ReadScript = (path: string) => string;

const FOLDER = new URL("../../../lua/", import.meta.url);

/** Reads the files that came with this program; the same relative place in source and build. */
export function readScriptFile(path: string): string {
  return readFileSync(fileURLToPath(new URL(path, FOLDER)), "utf8");
}

/**
 * The full text of a script, includes resolved.
 *
 * @throws {Error} When a file is missing or includes itself, naming the chain of files.
 */
export function loadScript(file: string, read: ReadScript = readScriptFile): string {
  return resolveIncludes(posix.normalize(file), [], new Set(), read);
}

const INCLUDE = /^[ \t]*--[ \t]*@include[ \t]+(\S+)[ \t]*$/gm;

function resolveIncludes(
  file: string,
  chain: readonly string[],
  done: Set<string>,
  read: ReadScript,
): string {
  const path = [...chain, file];
  if (chain.includes(file)) throw new Error(`Lua files include each other: ${path.join(" > ")}`);
  if (done.has(file)) return "";
  const text = readOrExplain(file, path, read);
  const resolved = text.replace(INCLUDE, (_line, target: string) =>
    resolveIncludes(posix.join(posix.dirname(file), target), path, done, read),
  );
  done.add(file);
  return resolved;
}

function readOrExplain(file: string, path: readonly string[], read: ReadScript): string {
  try {
    return read(file);
  } catch (cause) {
    throw new Error(`cannot read the Lua file ${file} (${path.join(" > ")})`, { cause });
  }
}
