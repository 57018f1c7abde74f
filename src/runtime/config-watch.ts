/**
 * Notices that files have changed, and takes nothing for a change that is half of one.
 *
 * Folders are watched, not files: a ConfigMap is updated by renaming a link, after which a watch on
 * the file itself is dead. An event only says "look": what counts is whether the bytes differ. They
 * must be the same twice before they are believed, so that a file that is being written, or a
 * folder that is being swapped between two of its files, is never half read. What is then found
 * unusable is looked at once more a little later. Looking again every few seconds covers whatever
 * events miss (network file systems, folders that appeared meanwhile, a machine out of watches).
 */
import { type FSWatcher, watch } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type InstantUs, US_PER_MS } from "../core/units.ts";
import type { Clock } from "../ports/clock.ts";

/** From the first event to the first look; a swap consists of several events. */
const DEBOUNCE_MS = 100;
/** Between two looks that must agree. */
const STABLE_MS = 50;
/** How long what is unusable is given to become usable, before it is told. */
const SETTLE_MS = 300;
/** Looks in a row that may differ; then the last one is taken as it is. */
const LOOKS_MAX = 20;
const POLL_MS = 10_000;

/** One look. */
export interface Look {
  /** Equal for equal bytes. */
  readonly fingerprint: string;
  /** Where a change shows up; a bounded number. */
  readonly folders: readonly string[];
}

/** What is watched, and who is told. */
export interface Subject<L extends Look> {
  look(): Promise<L>;
  isUsable(look: L): boolean;
  /** Called once for every change. */
  changed(look: L): void;
  /** Somebody asked, and nothing has changed. */
  same(): void;
}

export interface ConfigWatchOptions<L extends Look> {
  readonly clock: Clock;
  readonly subject: Subject<L>;
  /** The fingerprint of what is in force. */
  readonly known: string;
  readonly log: { warn(fields: object, message: string): void };
  /** Something threw that never should: a bug. */
  readonly onFault: (error: unknown) => void;
}

export class ConfigWatch<L extends Look> {
  private readonly options: ConfigWatchOptions<L>;
  private readonly watchers = new Map<string, FSWatcher>();
  private folders: readonly string[] = [];
  private known: string;
  private timer: NodeJS.Timeout | undefined;
  private due: InstantUs = Number.POSITIVE_INFINITY;
  private isLooking = false;
  /** Something happened during a look. */
  private isStale = false;
  private isAsked = false;
  private isTroubled = false;
  private isStopped = false;

  constructor(options: ConfigWatchOptions<L>) {
    this.options = options;
    this.known = options.known;
  }

  /** Begins with a look: the files may have changed since they were read. */
  start(): void {
    this.schedule(0);
  }

  /** Looks now. */
  ask(): void {
    this.isAsked = true;
    this.schedule(0);
  }

  /** Nothing is told from now on. */
  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
    this.follow([]);
  }

  private schedule(afterMs: number): void {
    if (this.isStopped) return;
    if (this.isLooking) {
      if (afterMs < POLL_MS) this.isStale = true;
      return;
    }
    const due = this.options.clock.monotonicUs() + afterMs * US_PER_MS;
    // An event never puts off what an earlier one has begun: events may never end.
    if (due >= this.due) return;
    clearTimeout(this.timer);
    this.due = due;
    this.timer = setTimeout(() => {
      this.run().catch(this.options.onFault);
    }, afterMs).unref();
  }

  private async run(): Promise<void> {
    this.due = Number.POSITIVE_INFINITY;
    this.isLooking = true;
    this.isStale = false;
    const isAsked = this.isAsked;
    this.isAsked = false;
    try {
      const look = await this.settled();
      if (this.isStopped) return;
      if (look.fingerprint !== this.known) {
        this.known = look.fingerprint;
        this.options.subject.changed(look);
      } else if (isAsked) {
        this.options.subject.same();
      }
    } finally {
      this.isLooking = false;
      if (this.isAsked) this.schedule(0);
      this.schedule(this.isStale ? DEBOUNCE_MS : POLL_MS);
    }
  }

  /** Looks until two looks agree, and a little longer while what they see is unusable. */
  private async settled(): Promise<L> {
    let look = await this.look();
    let isAgreed = false;
    for (let looks = 1; looks < LOOKS_MAX && !this.isStopped; looks += 1) {
      if (look.fingerprint === this.known) return look;
      if (isAgreed && this.options.subject.isUsable(look)) return look;
      await sleep(isAgreed ? SETTLE_MS : STABLE_MS, undefined, { ref: false });
      const next = await this.look();
      const isSame = next.fingerprint === look.fingerprint;
      if (isSame && isAgreed) return look;
      isAgreed = isSame;
      if (!isSame) look = next;
    }
    return look;
  }

  /** What comes after the look is an event: the folders are watched before it. */
  private async look(): Promise<L> {
    const { subject } = this.options;
    this.follow(this.folders);
    const look = await subject.look();
    if (look.folders.join("\n") === this.folders.join("\n")) return look;
    this.folders = look.folders;
    this.follow(this.folders);
    return subject.look();
  }

  /**
   * Watches these folders and no others. All watches are made anew, because one on a folder that
   * was replaced by another of the same name is dead without a word; the new one comes first, so
   * that there is no moment without.
   */
  private follow(folders: readonly string[]): void {
    const before = new Map(this.watchers);
    this.watchers.clear();
    let trouble: { readonly folder: string; readonly error: unknown } | undefined;
    for (const folder of this.isStopped ? [] : folders) {
      try {
        this.watchers.set(folder, this.open(folder));
      } catch (error) {
        // A folder that is gone again is no trouble: its end was an event further up.
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") trouble = { folder, error };
      }
    }
    for (const watcher of before.values()) watcher.close();
    if (trouble !== undefined && !this.isTroubled) {
      const { folder, error: err } = trouble;
      this.options.log.warn({ folder, err }, "a folder cannot be watched, only looked at");
    }
    this.isTroubled = trouble !== undefined;
  }

  private open(folder: string): FSWatcher {
    const watcher = watch(folder, { persistent: false }, () => this.schedule(DEBOUNCE_MS));
    // Without a listener an error of a watch would end the process; the next look makes a new one.
    watcher.on("error", () => {});
    return watcher;
  }
}
