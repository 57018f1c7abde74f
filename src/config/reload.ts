/**
 * The configuration in force, and what became of every other one that was read since the start.
 *
 * A configuration is put in force whole or not at all. One that has problems changes nothing: it is
 * counted, told in one line, and shown as refused until another one takes its place.
 */
import { isDeepStrictEqual } from "node:util";
import type { Limit } from "../core/limit.ts";
import { allLimits, type Config } from "./config.ts";
import { formatProblem, type Problem } from "./problem.ts";
import type { ConfigReader, Reading } from "./reading.ts";
import { applicable } from "./restart-only.ts";

/** Most problems of a refused file that are logged or shown, and most names of limits. */
const TOLD_MAX = 10;

const MS_PER_SECOND = 1_000;

/** As much of the log as is needed here. */
export interface ReloadLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface LiveConfigOptions {
  readonly first: Config;
  readonly reader: ConfigReader;
  /** Puts all of a configuration in force before it returns. */
  readonly putInForce: (config: Config) => void;
  readonly log: ReloadLog;
  /** Wall clock in ms since the epoch, for people to read. */
  readonly wallMs: () => number;
}

/** Which configuration is in force, and what became of the one that was read last. */
export interface Standing {
  /** Hash of the configuration in force. */
  readonly hash: string;
  /** When it was put in force, seconds since the epoch. */
  readonly inForceSinceSeconds: number;
  readonly reloadsOk: number;
  readonly reloadsFailed: number;
  /** Since the start; `none` when the files have not changed. */
  readonly lastReload: "none" | "ok" | "failed";
  readonly lastReloadOk: boolean;
  /** When files were read last that had changed, seconds since the epoch. */
  readonly lastReloadSeconds: number | undefined;
  /** When the files were last found good, seconds since the epoch. */
  readonly lastSuccessSeconds: number;
  /** Why they were refused; empty unless they were, and cut to the first few. */
  readonly problems: readonly Problem[];
  /** Fields that the files change and that wait for a restart. */
  readonly needsRestart: readonly string[];
}

export class LiveConfig {
  private readonly options: LiveConfigOptions;
  private inForce: Config;
  private inForceSinceMs: number;
  private reloadsOk = 0;
  private reloadsFailed = 0;
  private lastReload: Standing["lastReload"] = "none";
  private lastReloadMs: number | undefined;
  private lastSuccessMs: number;
  private problems: readonly Problem[] = [];
  private needsRestart: readonly string[] = [];

  constructor(options: LiveConfigOptions) {
    this.options = options;
    this.inForce = options.first;
    this.inForceSinceMs = options.wallMs();
    this.lastSuccessMs = this.inForceSinceMs;
  }

  get config(): Config {
    return this.inForce;
  }

  standing(): Standing {
    const { lastReload, lastReloadMs, reloadsOk, reloadsFailed, problems, needsRestart } = this;
    return {
      hash: this.inForce.hash,
      inForceSinceSeconds: this.inForceSinceMs / MS_PER_SECOND,
      reloadsOk,
      reloadsFailed,
      lastReload,
      lastReloadOk: lastReload !== "failed",
      lastReloadSeconds: lastReloadMs === undefined ? undefined : lastReloadMs / MS_PER_SECOND,
      lastSuccessSeconds: this.lastSuccessMs / MS_PER_SECOND,
      problems,
      needsRestart,
    };
  }

  look(): Promise<Reading> {
    return this.options.reader.read();
  }

  isUsable(reading: Reading): boolean {
    return reading.load().config !== undefined;
  }

  /** Takes in another state of the files: puts it in force, or says why not. */
  changed(reading: Reading): void {
    const { config, problems } = reading.load();
    if (config === undefined) this.refuse(problems);
    else this.accept(config);
  }

  /** Somebody asked for a reload, and the files are as they were. */
  same(): void {
    this.options.log.info({ hash: this.inForce.hash }, "nothing to reload: the files are the same");
  }

  private accept(next: Config): void {
    const { log, wallMs } = this.options;
    const before = this.inForce;
    const { config, needsRestart } = applicable(before, next);
    const atMs = wallMs();
    if (config.hash !== before.hash) {
      this.options.putInForce(config);
      this.inForce = config;
      this.inForceSinceMs = atMs;
    }
    this.reloadsOk += 1;
    this.lastSuccessMs = atMs;
    this.lastReload = "ok";
    this.lastReloadMs = atMs;
    this.problems = [];
    const fields = { file: config.file, hash: config.hash, ...changesOf(before, config) };
    log.info(fields, "the configuration was reloaded");
    if (needsRestart.length > 0) {
      log.warn({ file: config.file, fields: needsRestart }, "needs a restart to change");
    }
    this.needsRestart = needsRestart;
  }

  private refuse(problems: readonly Problem[]): void {
    this.reloadsFailed += 1;
    this.lastReload = "failed";
    this.lastReloadMs = this.options.wallMs();
    this.problems = problems.slice(0, TOLD_MAX);
    this.options.log.error(
      {
        file: this.inForce.file,
        hash: this.inForce.hash,
        problems: this.problems.map(formatProblem),
        ...(problems.length > TOLD_MAX && { more: problems.length - TOLD_MAX }),
      },
      "the configuration was refused; the one before stays in force",
    );
  }
}

/** Names of limits, for people: what a reload did to them. */
function changesOf(from: Config, to: Config): Record<string, unknown> {
  const before = byName(allLimits(from));
  const after = byName(allLimits(to));
  const names = (limits: ReadonlyMap<string, Limit>, is: (limit: Limit) => boolean): string[] =>
    [...limits.values()].filter(is).map(({ name }) => name);
  const lists = {
    added: names(after, ({ name }) => !before.has(name)),
    removed: names(before, ({ name }) => !after.has(name)),
    changed: names(after, (limit) => {
      const old = before.get(limit.name);
      return old !== undefined && !isDeepStrictEqual(old, limit);
    }),
  };
  return Object.fromEntries(
    Object.entries(lists).flatMap(([what, all]) => {
      if (all.length === 0) return [];
      const more = all.length > TOLD_MAX ? [`and ${all.length - TOLD_MAX} more`] : [];
      return [[what, [...all.slice(0, TOLD_MAX), ...more]]];
    }),
  );
}

function byName(limits: readonly Limit[]): ReadonlyMap<string, Limit> {
  return new Map(limits.map((limit) => [limit.name, limit]));
}
