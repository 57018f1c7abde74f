/** Takes the fields of a file of rules one by one and notes what is wrong with each. */
import { didYouMean } from "./closest.ts";
import type { DomainProblems } from "./domain-problems.ts";
import type { Position } from "./source-file.ts";
import type { Path } from "./tree.ts";
import type { MapNode, TreeNode } from "./yaml-tree.ts";

export const ROOT_FIELDS: readonly string[] = ["domain", "descriptors"];
export const DESCRIPTOR_FIELDS: readonly string[] = [
  "key",
  "value",
  "rate_limit",
  "descriptors",
  "shadow_mode",
  "quota_mode",
  "share_threshold",
  "detailed_metric",
  "value_to_metric",
  "metadata",
  "aliquot",
];
export const RATE_LIMIT_FIELDS: readonly string[] = [
  "unit",
  "requests_per_unit",
  "unlimited",
  "name",
  "replaces",
];
export const REPLACES_FIELDS: readonly string[] = ["name"];

/** Where a field belongs that stands elsewhere. */
const HOMES: readonly (readonly [place: string, fields: readonly string[]])[] = [
  ["at the top of the file", ROOT_FIELDS],
  ["in a descriptor, beside its key", DESCRIPTOR_FIELDS],
  ["in a rate_limit", RATE_LIMIT_FIELDS],
];

export class FieldReader {
  readonly problems: DomainProblems;

  constructor(problems: DomainProblems) {
    this.problems = problems;
  }

  /** The maps of a list; a field that is absent or empty is an empty list. */
  maps(parent: MapNode, path: Path, name: string): { node: MapNode; at: Path }[] {
    const given = this.value(parent, name);
    if (given === undefined) return [];
    if (given.kind !== "list") {
      this.problems.add([...path, name], given, "must be a list of maps");
      return [];
    }
    return given.items.flatMap((node, index) => {
      const at = [...path, name, index];
      if (node.kind === "map") return [{ node, at }];
      this.problems.add(at, node, "must be a map");
      return [];
    });
  }

  /** A text; undefined when it is absent or empty, which means the same in this format. */
  text(parent: MapNode, path: Path, name: string): string | undefined {
    const given = this.value(parent, name);
    if (given?.kind === "text") return given.text === "" ? undefined : given.text;
    if (given !== undefined) this.problems.add([...path, name], given, "must be a text");
    return undefined;
  }

  /** The words of YAML 1.1, which that service reads. */
  flag(parent: MapNode, path: Path, name: string): boolean {
    const given = this.value(parent, name);
    if (given === undefined) return false;
    const word = given.kind === "text" && !given.isQuoted ? given.text.toLowerCase() : "";
    if (/^(true|yes|on|y)$/.test(word)) return true;
    if (!/^(false|no|off|n)$/.test(word)) {
      this.problems.add([...path, name], given, "must be true or false");
    }
    return false;
  }

  value(parent: MapNode, name: string): TreeNode | undefined {
    const value = parent.fields.get(name)?.value;
    return value?.kind === "empty" ? undefined : value;
  }

  place(parent: MapNode, name: string): Position {
    return parent.fields.get(name)?.namePosition ?? parent.position;
  }

  checkNames(node: MapNode, path: Path, known: readonly string[]): void {
    for (const name of node.fields.keys()) {
      if (!known.includes(name)) this.unknown(node, path, name, known);
    }
  }

  unknown(node: TreeNode, path: Path, name: string, known: readonly string[]): void {
    const home = HOMES.find(([, fields]) => fields.includes(name));
    const guess = didYouMean(name, known);
    const advice =
      home !== undefined
        ? `; it belongs ${home[0]}`
        : guess === ""
          ? `; known here: ${known.join(", ")}`
          : guess;
    const position =
      (node.kind === "map" ? node.fields.get(name)?.namePosition : undefined) ?? node.position;
    this.problems.addAt([...path, name], position, `unknown field${advice}`);
  }
}

/** The node at a path, or the nearest one around it. */
export function nodeAt(root: TreeNode, path: Path): TreeNode {
  let node = root;
  for (const step of path) {
    const next = node.kind === "map" ? node.fields.get(String(step))?.value : undefined;
    if (next === undefined) return node;
    node = next;
  }
  return node;
}
