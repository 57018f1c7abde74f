/**
 * Finds and reads the files of rules that a configuration names.
 *
 * Patterns are matched folder by folder, so that what a ConfigMap keeps beside its files (hidden
 * folders with the same files in them) is not found twice.
 */
import { readdir, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, sep } from "node:path";
import { readConfigFile } from "./read-file.ts";
import { DOMAIN_FILES_MAX, type DomainFile } from "./resolve-envoy.ts";
import { parseSourceFile } from "./source-file.ts";
import { valueAt } from "./tree.ts";

/** One more than is taken tells that there are too many. */
const READ_MAX = DOMAIN_FILES_MAX + 1;

/** The patterns that a configuration names; what is wrong with them is told elsewhere. */
export function domainPatterns(file: {
  readonly path: string;
  readonly text: string;
}): readonly string[] {
  const patterns = valueAt(parseSourceFile(file.path, file.text).value, ["envoy", "domains"]);
  if (!Array.isArray(patterns)) return [];
  return patterns.filter((pattern) => typeof pattern === "string" && pattern !== "");
}

/** @param configPath - The configuration: relative patterns begin where it is. */
export async function readDomainFiles(
  configPath: string,
  patterns: readonly string[],
): Promise<readonly DomainFile[]> {
  const files: DomainFile[] = [];
  const known = new Set<string>();
  for (const pattern of patterns) {
    for (const path of await findFiles(startOf(configPath, pattern))) {
      if (files.length >= READ_MAX) return files;
      if (known.has(path)) {
        files.push({ pattern, repeats: path });
        continue;
      }
      known.add(path);
      const { text, problem } = await readConfigFile(path);
      files.push(text === undefined ? { pattern, problem } : { pattern, path, text });
    }
  }
  return files;
}

/** The folder of a pattern's files, up to its first wildcard. */
export function fixedFolder(configPath: string, pattern: string): string {
  const steps = startOf(configPath, pattern).split(sep);
  const first = steps.findIndex(hasWildcard);
  return steps.slice(0, first < 0 ? -1 : first).join(sep) || (isAbsolute(pattern) ? sep : ".");
}

function startOf(configPath: string, pattern: string): string {
  return isAbsolute(pattern) ? pattern : join(dirname(configPath), pattern);
}

/** Paths that a pattern stands for, in the order of their names; one without wildcards as it is. */
async function findFiles(pattern: string): Promise<readonly string[]> {
  if (!hasWildcard(pattern)) return [pattern];
  const [first = "", ...steps] = pattern.split(sep);
  let found = [first === "" && isAbsolute(pattern) ? sep : first];
  if (hasWildcard(first)) found = await matchesIn(".", first);
  for (const step of steps) {
    if (step === "") continue;
    const next: string[] = [];
    for (const folder of found) {
      next.push(...(hasWildcard(step) ? await matchesIn(folder, step) : [join(folder, step)]));
    }
    found = next.slice(0, READ_MAX);
  }
  const files: string[] = [];
  for (const path of found) if (await isFile(path)) files.push(path);
  return files;
}

async function matchesIn(folder: string, step: string): Promise<string[]> {
  const source = step.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*+/g, ".*");
  const pattern = new RegExp(`^${source.replaceAll("?", ".")}$`, "su");
  try {
    const names = await readdir(folder);
    return names
      .filter((name) => pattern.test(name) && (!name.startsWith(".") || step.startsWith(".")))
      .toSorted()
      .map((name) => (folder === "." ? name : join(folder, name)));
  } catch {
    // No such folder, or none that may be read: the pattern finds nothing, which is told.
    return [];
  }
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

function hasWildcard(text: string): boolean {
  return /[*?]/.test(text);
}
