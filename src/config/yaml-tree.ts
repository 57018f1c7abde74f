/**
 * A YAML text as a tree in which every value knows its place and its text as it was written.
 *
 * Plain values would lose what another reader of the same file may see: `1.0` and `0x10` are texts
 * where a text is wanted, and which words are switches depends on the version of YAML. Here a
 * scalar stays a text, and whoever knows what is wanted reads it.
 */
import { isAlias, isMap, isScalar, isSeq, type Node, type Pair } from "yaml";
import type { Problem } from "./problem.ts";
import { type ParsedYaml, type Position, parseYaml } from "./source-file.ts";

/** Most values of one file, those that aliases repeat counted each time. */
const NODES_MAX = 200_000;

/** Deepest nesting; each level of rules takes three. */
const DEPTH_MAX = 200;

interface Placed {
  readonly position: Position;
}

export interface TextNode extends Placed {
  readonly kind: "text";
  /** As written, without quotes. */
  readonly text: string;
  readonly isQuoted: boolean;
}

export interface ListNode extends Placed {
  readonly kind: "list";
  readonly items: readonly TreeNode[];
}

export interface MapNode extends Placed {
  readonly kind: "map";
  /** Names are distinct; what `<<` brings is among them. */
  readonly fields: ReadonlyMap<string, Field>;
}

/** `name:` with nothing, or `null`, behind it. */
export interface EmptyNode extends Placed {
  readonly kind: "empty";
}

export type TreeNode = TextNode | ListNode | MapNode | EmptyNode;

export interface Field {
  readonly namePosition: Position;
  readonly value: TreeNode;
}

export interface YamlTree {
  /** Undefined when the text could not be read. */
  readonly root: TreeNode | undefined;
  readonly problems: readonly Problem[];
}

export function parseYamlTree(path: string, text: string): YamlTree {
  const parsed = parseYaml(path, text);
  if (parsed.document === undefined) return { root: undefined, problems: parsed.problems };
  try {
    return { root: new Builder(parsed).root(), problems: parsed.problems };
  } catch (error) {
    if (!(error instanceof TooLarge)) throw error;
    const { line, column } = error.position;
    const problem = { source: path, line, column, field: "", value: undefined };
    return { root: undefined, problems: [{ ...problem, message: error.message }] };
  }
}

/** The tree as JSON values: unquoted numbers, `true`, `false` and `null` are what they say. */
export function plainValue(node: TreeNode): unknown {
  switch (node.kind) {
    case "empty":
      return null;
    case "list":
      return node.items.map(plainValue);
    case "map":
      return Object.fromEntries(
        [...node.fields].map(([name, { value }]) => [name, plainValue(value)]),
      );
    case "text":
      return node.isQuoted ? node.text : plainScalar(node.text);
  }
}

function plainScalar(text: string): unknown {
  if (/^(true|True|TRUE)$/.test(text)) return true;
  if (/^(false|False|FALSE)$/.test(text)) return false;
  const isNumber = /^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$/.test(text);
  return isNumber && Number.isFinite(Number(text)) ? Number(text) : text;
}

class TooLarge extends Error {
  override readonly name = "TooLarge";
  readonly position: Position;

  constructor(message: string, position: Position) {
    super(message);
    this.position = position;
  }
}

class Builder {
  readonly #parsed: ParsedYaml;
  #nodes = 0;

  constructor(parsed: ParsedYaml) {
    this.#parsed = parsed;
  }

  root(): TreeNode {
    return this.#build(this.#parsed.document.contents, 0, { line: 1, column: 1 });
  }

  /** @param around - The place to name when the node has none of its own. */
  #build(given: unknown, depth: number, around: Position): TreeNode {
    const node = isAlias(given) ? given.resolve(this.#parsed.document) : given;
    const start = (given as Node | null)?.range?.[0];
    const position = start === undefined ? around : this.#parsed.at(start);
    this.#nodes += 1;
    if (this.#nodes > NODES_MAX) {
      throw new TooLarge(`must hold at most ${NODES_MAX} values`, position);
    }
    if (depth > DEPTH_MAX) throw new TooLarge("is nested too deeply", position);
    if (isSeq(node)) {
      const items = node.items.map((item) => this.#build(item, depth + 1, position));
      return { kind: "list", position, items };
    }
    if (isMap(node)) {
      return { kind: "map", position, fields: this.#fields(node.items, depth, position) };
    }
    if (!isScalar(node)) return { kind: "empty", position };
    const isQuoted = node.type !== "PLAIN";
    const text = isQuoted ? String(node.value) : (node.source ?? String(node.value));
    const isEmpty = !isQuoted && /^(~|null|Null|NULL)?$/.test(text);
    return isEmpty ? { kind: "empty", position } : { kind: "text", position, text, isQuoted };
  }

  #fields(pairs: readonly Pair[], depth: number, around: Position): ReadonlyMap<string, Field> {
    const fields = new Map<string, Field>();
    const merged: Field[] = [];
    for (const { key, value } of pairs) {
      const name = String(isScalar(key) ? (key.source ?? key.value) : key);
      const start = (key as Node | null)?.range?.[0];
      const namePosition = start === undefined ? around : this.#parsed.at(start);
      const field = { namePosition, value: this.#build(value, depth + 1, namePosition) };
      if (name === "<<") merged.push(field);
      else fields.set(name, field);
    }
    // The map's own fields go before merged ones, and the first of several merged maps goes first.
    for (const { value } of merged) {
      for (const map of value.kind === "list" ? value.items : [value]) {
        if (map.kind !== "map") continue;
        for (const [name, field] of map.fields) if (!fields.has(name)) fields.set(name, field);
      }
    }
    return fields;
  }
}
