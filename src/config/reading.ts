/**
 * One look at everything that a configuration is made of: the file, and the files of rules that it
 * names. One state of the disk is told from another by the bytes, never by size or time: a
 * ConfigMap may be swapped for another of the same length within the same second.
 */
import { createHash } from "node:crypto";
import { readlink, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, resolve, sep } from "node:path";
import { domainPatterns, fixedFolder, readDomainFiles } from "./domain-files.ts";
import { type Loaded, loadConfig } from "./load.ts";
import { type ReadFile, readConfigFile } from "./read-file.ts";
import type { DomainFile } from "./resolve-envoy.ts";
import type { Environment, Flags } from "./settings.ts";

/** Most folders named for watching; the rest is seen by whoever looks again after a while. */
export const FOLDERS_MAX = 64;

/** A chain of links that is longer goes in a circle. */
const LINKS_MAX = 40;

/** Where a configuration comes from; nothing of it changes while the process lives. */
export interface ConfigOrigin {
  readonly path: string;
  readonly env: Environment;
  readonly flags: Flags;
  readonly hostname: string;
}

/** What was read, as texts: another process makes the same configuration of it. */
export interface ReadTexts {
  readonly file: ReadFile;
  readonly domainFiles: readonly DomainFile[];
}

export interface Reading {
  /** Equal for equal bytes, SHA-256, hex. */
  readonly fingerprint: string;
  /** Folders whose entries decide what is read; all of them exist. */
  readonly folders: readonly string[];
  readonly texts: ReadTexts;
  /** Validates what was read; the same result at every call. */
  load(): Loaded;
}

export class ConfigReader {
  readonly path: string;
  private readonly origin: ConfigOrigin;
  /** Patterns of the text read last: a file that stays the same is not parsed again. */
  private last: { readonly text: string; readonly patterns: readonly string[] } | undefined;

  constructor(origin: ConfigOrigin) {
    this.path = origin.path;
    this.origin = origin;
  }

  /** Never rejects for anything that the disk holds or lacks. */
  async read(): Promise<Reading> {
    const { path } = this;
    const file = await readConfigFile(path);
    const patterns = file.text === undefined ? [] : this.patternsOf(file.text);
    const domainFiles = await readDomainFiles(path, patterns);
    return this.readingOf({ file, domainFiles }, await watchable(path, patterns, domainFiles));
  }

  /** The reading of what this or another process has read; there is nothing to watch about it. */
  readingOf(texts: ReadTexts, folders: readonly string[] = []): Reading {
    const { file, domainFiles } = texts;
    let loaded: Loaded | undefined;
    return {
      fingerprint: fingerprintOf(file, domainFiles),
      folders,
      texts,
      load: () => {
        loaded ??= this.load(texts);
        return loaded;
      },
    };
  }

  private load({ file, domainFiles }: ReadTexts): Loaded {
    if (file.text === undefined) return { problems: [file.problem] };
    return loadConfig({ ...this.origin, file: { path: this.path, text: file.text }, domainFiles });
  }

  private patternsOf(text: string): readonly string[] {
    if (this.last?.text !== text) {
      this.last = { text, patterns: domainPatterns({ path: this.path, text }) };
    }
    return this.last.patterns;
  }
}

function fingerprintOf(file: ReadFile, domainFiles: readonly DomainFile[]): string {
  const hash = createHash("sha256");
  const add = (text: string): void => {
    hash.update(`${text.length}:`).update(text);
  };
  add(file.text ?? `?${file.problem.message}`);
  for (const each of domainFiles) {
    if ("repeats" in each) continue;
    if ("problem" in each) add(`?${each.problem.source}: ${each.problem.message}`);
    else {
      add(each.path);
      add(each.text);
    }
  }
  return hash.digest("hex");
}

/** Folders in which a file can appear, vanish or be swapped. */
async function watchable(
  path: string,
  patterns: readonly string[],
  domainFiles: readonly DomainFile[],
): Promise<readonly string[]> {
  const wanted = new Set(await foldersOnTheWay(path));
  for (const pattern of patterns) wanted.add(fixedFolder(path, pattern));
  const seen = new Set<string>();
  for (const file of domainFiles) {
    if (!("text" in file) || wanted.size >= FOLDERS_MAX || seen.has(dirname(file.path))) continue;
    // One file stands for its neighbours: what a ConfigMap mounts lies behind one link.
    seen.add(dirname(file.path));
    for (const folder of await foldersOnTheWay(file.path)) wanted.add(folder);
  }
  const existing = new Set<string>();
  for (const folder of [...wanted].slice(0, FOLDERS_MAX)) existing.add(await nearest(folder));
  return [...existing];
}

/** The folder of the file, that of every link which leads there, and that of what they lead to. */
async function foldersOnTheWay(path: string): Promise<readonly string[]> {
  const folders = new Set([dirname(resolve(path))]);
  let current: string = sep;
  let rest = stepsOf(resolve(path));
  for (let links = 0; rest.length > 0 && links < LINKS_MAX; ) {
    const [step = "", ...after] = rest;
    const next = join(current, step);
    const target = await linkTarget(next);
    rest = after;
    if (target === undefined) {
      current = next;
      continue;
    }
    links += 1;
    folders.add(current);
    rest = [...stepsOf(target), ...after];
    if (isAbsolute(target)) current = sep;
  }
  return [...folders.add(dirname(current))];
}

function stepsOf(path: string): string[] {
  return path.split(sep).filter((step) => step !== "");
}

async function linkTarget(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch {
    // No link, or nothing there.
    return undefined;
  }
}

/** The folder, or the nearest one around it that exists. */
async function nearest(folder: string): Promise<string> {
  let at = resolve(folder);
  while (at !== sep) {
    try {
      if ((await stat(at)).isDirectory()) return at;
    } catch {
      // Not there (any more): whoever makes it makes an entry further up.
    }
    at = dirname(at);
  }
  return at;
}
