/** Collects the problems of one file of rules. */
import { formatValue, type Problem } from "./problem.ts";
import type { Position } from "./source-file.ts";
import { formatPath, type Path } from "./tree.ts";
import type { TreeNode } from "./yaml-tree.ts";

/** Most problems told of one file. */
const PROBLEMS_MAX = 200;

export class DomainProblems {
  readonly #source: string;
  readonly #problems: Problem[] = [];

  constructor(source: string) {
    this.#source = source;
  }

  get all(): readonly Problem[] {
    return this.#problems;
  }

  /** A value is wrong. Texts are shown. */
  add(path: Path, node: TreeNode, message: string): void {
    this.addAt(path, node.position, message, node.kind === "text" ? node.text : undefined);
  }

  /** @param value - The offending value, undefined to show none. */
  addAt(path: Path, position: Position, message: string, value?: unknown): void {
    if (this.#problems.length >= PROBLEMS_MAX) return;
    const { line, column } = position;
    this.#problems.push({
      source: this.#source,
      line,
      column,
      field: formatPath(path),
      message,
      value: formatValue(value),
    });
  }
}
