/** The one place of this folder that touches the disk. */
import { readFile, stat } from "node:fs/promises";
import type { Problem } from "./problem.ts";
import { FILE_BYTES_MAX } from "./source-file.ts";

export type ReadFile =
  | { readonly text: string; readonly problem?: undefined }
  | { readonly text?: undefined; readonly problem: Problem };

/** Reads a configuration file. A file that cannot be read is a problem of the configuration. */
export async function readConfigFile(path: string): Promise<ReadFile> {
  const unreadable = (message: string): ReadFile => ({
    problem: {
      source: path,
      line: undefined,
      column: undefined,
      field: "",
      message,
      value: undefined,
    },
  });
  try {
    const info = await stat(path);
    if (info.isDirectory()) return unreadable("is a directory; name the file in it");
    if (info.size > FILE_BYTES_MAX) {
      return unreadable(`must be at most ${FILE_BYTES_MAX} bytes long`);
    }
    const bytes = await readFile(path);
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch (error) {
    if (error instanceof TypeError) return unreadable("is not UTF-8 text");
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT") return unreadable("does not exist; name a file with --config FILE");
    if (code === "EACCES") return unreadable("may not be read by this user");
    return unreadable(`cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}
