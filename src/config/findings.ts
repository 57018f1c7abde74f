/** Collects the problems of one load and knows where each value came from. */
import { formatValue, type Problem } from "./problem.ts";
import type { Overlaid } from "./settings.ts";
import type { SourceFile } from "./source-file.ts";
import { formatPath, isMap, type Path, valueAt } from "./tree.ts";

/** Most problems told at once: a megabyte of junk must not become a hundred megabytes of advice. */
const PROBLEMS_MAX = 200;

export class Findings {
  readonly #file: SourceFile;
  readonly #overlaid: Overlaid;
  readonly #problems: Problem[];
  readonly #included: Problem[] = [];
  #untold = 0;

  constructor(file: SourceFile, overlaid: Overlaid) {
    this.#file = file;
    this.#overlaid = overlaid;
    this.#problems = file.problems.slice(0, PROBLEMS_MAX);
  }

  /** All problems in the order of the file, those from elsewhere last. */
  get problems(): readonly Problem[] {
    const place = ({ line, column }: Problem): readonly [number, number] => [
      line ?? Number.MAX_SAFE_INTEGER,
      column ?? 0,
    ];
    const told = this.#problems.toSorted((a, b) => {
      const [[lineA, columnA], [lineB, columnB]] = [place(a), place(b)];
      return lineA - lineB || columnA - columnB;
    });
    if (this.#untold === 0) return [...told, ...this.#included];
    const rest = `has ${this.#untold} more problems`;
    return [
      ...told,
      this.#problem(this.#file.path, [], undefined, rest, undefined),
      ...this.#included,
    ];
  }

  /** The value at a path with environment and flags laid over the file. */
  valueAt(path: Path): unknown {
    return valueAt(this.#overlaid.value, path);
  }

  /** Who set the value at a path, when it was not the file. */
  setter(path: Path): string | undefined {
    return this.#overlaid.setter(path);
  }

  lineOf(path: Path): number {
    return this.#file.position(path, "value").line;
  }

  /** A value is wrong. Scalars are shown. */
  add(path: Path, message: string): void {
    const value = this.valueAt(path);
    const shown = isMap(value) && !message.startsWith("must be") ? undefined : value;
    this.#push(path, "value", message, formatValue(shown));
  }

  /** A name is wrong. Its value is not shown, since nobody knows whether it is a secret. */
  addName(path: Path, message: string): void {
    this.#push(path, "name", message, undefined);
  }

  /** A value that no field of the file stands for is wrong. */
  addForeign(source: string, field: string, message: string, value: unknown): void {
    const shown = formatValue(value);
    this.#problems.push({
      source,
      line: undefined,
      column: undefined,
      field,
      message,
      value: shown,
    });
  }

  /** Adds what is wrong with another file that this one names; told after its own. */
  include(problems: readonly Problem[]): void {
    this.#included.push(...problems.slice(0, PROBLEMS_MAX - this.#included.length));
  }

  #push(path: Path, part: "name" | "value", message: string, value: string | undefined): void {
    if (this.#problems.length >= PROBLEMS_MAX) {
      this.#untold += 1;
      return;
    }
    const setter = this.setter(path);
    const position = setter === undefined ? this.#file.position(path, part) : undefined;
    this.#problems.push(this.#problem(setter ?? this.#file.path, path, position, message, value));
  }

  #problem(
    source: string,
    path: Path,
    position: { line: number; column: number } | undefined,
    message: string,
    value: string | undefined,
  ): Problem {
    const { line, column } = position ?? { line: undefined, column: undefined };
    return { source, line, column, field: formatPath(path), message, value };
  }
}
