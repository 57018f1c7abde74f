/**
 * A folder like the mount of a ConfigMap: the files are links into `..data`, which is a link to a
 * hidden folder, and an update renames a new link over `..data`.
 */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

export class ConfigMap {
  readonly folder: string;
  private current: string | undefined;

  /** @param within - Where the mount is made. */
  constructor(within: string) {
    this.folder = mkdtempSync(join(within, "mount-"));
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  /** Updates all files at once, the way of the kubelet. @param mtime - Of every file. */
  swap(files: Readonly<Record<string, string>>, mtime?: Date): void {
    const next = mkdtempSync(join(this.folder, "..gen_"));
    for (const [name, text] of Object.entries(files)) {
      const path = join(next, name);
      mkdirSync(join(path, ".."), { recursive: true });
      writeFileSync(path, text);
      if (mtime !== undefined) utimesSync(path, mtime, mtime);
    }
    const link = this.path("..data_tmp");
    symlinkSync(next.slice(this.folder.length + 1), link);
    renameSync(link, this.path("..data"));
    for (const name of readdirSync(next)) {
      if (this.current === undefined) symlinkSync(join("..data", name), this.path(name));
    }
    if (this.current !== undefined) rmSync(this.current, { recursive: true });
    this.current = next;
  }
}
