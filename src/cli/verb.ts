/**
 * What a verb of the command line is: its options as data, from which parsing and help come, and
 * one function that does it. Verbs speak only through their `Io`, so that tests can listen.
 */

import type { Terminal } from "./terminal.ts";

/** What a verb sees of the process. */
export interface Io {
  /** Both take whole lines, each with its line feed. */
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly hostname: string;
  /** Where output and keys are those of a person's terminal. */
  readonly terminal?: Terminal | undefined;
}

export interface Option {
  /** Without dashes. */
  readonly name: string;
  /** What the value is called in the help; undefined for a switch. */
  readonly value: string | undefined;
  readonly help: string;
}

/** Flags by name without dashes; a switch is "true" unless it was given a value. */
export type GivenFlags = ReadonlyMap<string, string>;

export interface Given {
  readonly operands: readonly string[];
  readonly flags: GivenFlags;
}

export interface Verb {
  readonly name: string;
  /** One line for the list of verbs. */
  readonly summary: string;
  /** Names of the operands, such as `FILE...`; empty for none. */
  readonly operands: string;
  /** Fewest and most operands. */
  readonly operandCount: readonly [least: number, most: number];
  readonly options: readonly Option[];
  /** Whole command lines with a word on each. */
  readonly examples: readonly (readonly [command: string, does: string])[];
  /** @returns The exit code. @throws {UsageError} When the operands or flags make no sense. */
  run(given: Given, io: Io): Promise<number>;
}

export const EXIT = {
  ok: 0,
  failure: 1,
  /** Usage or configuration. */
  usage: 2,
  denied: 3,
  unreachable: 4,
} as const;

/** The command line made no sense; the message says why. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
