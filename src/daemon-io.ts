/** What a daemon needs of whoever starts it, and what it gives back. */
import type { ConfigReader, Reading } from "./config/reading.ts";

export interface DaemonIo {
  /** Takes whole lines, each with its line feed; for people. The log goes its own way. */
  readonly stdout: (text: string) => void;
  readonly version: string;
  /** Where the configuration came from, to look there again. */
  readonly reader: ConfigReader;
  /** The look that it came from. */
  readonly reading: Reading;
}

export interface Daemon {
  /** Resolves with the exit code of the process once everything is stopped; never rejects. */
  readonly finished: Promise<number>;
}
