/** Who imports whom, to find the files that nobody needs. */
import { posix } from "node:path";
import { blanked, type ProjectFile } from "./project-files.ts";

const IMPORTS = /(?:\bfrom\s+|\bimport\s+|\bimport\(\s*|new URL\(\s*)"(\.{1,2}\/[^"]+)"/g;

/** Relative imports and file URLs of a TypeScript or JavaScript file, as project paths. */
export function importsOf(file: ProjectFile): string[] {
  const code = blanked(file, "comments");
  return [...code.matchAll(IMPORTS)].map(([, specifier]) =>
    posix.join(posix.dirname(file.path), specifier as string),
  );
}

/** Paths that the entries reach, the entries included. */
export function reachable(files: readonly ProjectFile[], entries: readonly string[]): Set<string> {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const seen = new Set<string>();
  const queue = [...entries];
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    const file = byPath.get(path);
    if (file === undefined || seen.has(path)) continue;
    seen.add(path);
    queue.push(...importsOf(file));
  }
  return seen;
}
