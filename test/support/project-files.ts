/** The project's own text files, as the tidy rules see them. */
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";

export interface ProjectFile {
  /** Relative to the project, with slashes. */
  readonly path: string;
  readonly text: string;
}

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

const FOREIGN = new Set(["node_modules", "dist", ".git", "coverage", "out"]);
const TEXT = new Set([
  ".ts",
  ".mjs",
  ".lua",
  ".md",
  ".json",
  ".yaml",
  ".yml",
  ".grit",
  ".sh",
  ".proto",
  ".csv",
  "",
]);

/** All text files that are ours: nothing installed, built or generated. */
export function projectFiles(): ProjectFile[] {
  return walk("").map((path) => ({ path, text: readFileSync(join(ROOT, path), "utf8") }));
}

function walk(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter(({ name }) => !FOREIGN.has(name) && !name.startsWith(".venv"))
    .flatMap((entry) => {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) return walk(path);
      return entry.isFile() && TEXT.has(extname(entry.name)) ? [path] : [];
    })
    .sort();
}

/**
 * The text with comments, strings or both blanked out, every line where it was. Template strings
 * count as strings up to their first `${`; that is exact enough for rules about calls and words.
 */
export function blanked(file: ProjectFile, what: "comments" | "comments and strings"): string {
  const lua = file.path.endsWith(".lua");
  const comment = lua ? /--\[\[[\s\S]*?\]\]|--[^\n]*/ : /\/\*[\s\S]*?\*\/|(?<![:"'`\w])\/\/[^\n]*/;
  const quoted = /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\$]|\$(?!\{))*`?/;
  const scanner = new RegExp(`(${comment.source})|(${quoted.source})`, "g");
  return file.text.replace(scanner, (found: string, isComment: string | undefined) =>
    isComment !== undefined || what === "comments and strings" ? blankOut(found) : found,
  );
}

const blankOut = (text: string): string => text.replace(/[^\n]/g, " ");
