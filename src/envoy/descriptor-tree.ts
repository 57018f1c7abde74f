/**
 * Finds the rule for a descriptor, the way of envoyproxy/ratelimit.
 *
 * The walk goes entry by entry: at each level the exact value goes first, then the patterns in the
 * order of the file, then the rule for any value. There is no way back, and only a rule at the last
 * entry counts. Everything that depends on the configuration alone is made once, so that a
 * descriptor costs a map lookup or two per entry.
 */
import { shapedKey } from "../core/shaped-limits.ts";
import type {
  DescriptorDomain,
  DescriptorEntry,
  DescriptorMatch,
  DescriptorMatcher,
  DescriptorNode,
  DescriptorRule,
} from "../ports/descriptors.ts";
import { appendValue, finishKey } from "./descriptor-key.ts";
import { Wildcard } from "./wildcard.ts";

interface Branch {
  readonly rule: DescriptorRule | undefined;
  /** Each value is counted by itself. */
  readonly isOpen: boolean;
  readonly next: Level | undefined;
}

/** The nodes of one level and one key. */
interface Choices {
  readonly exact: Map<string, Branch>;
  readonly patterns: { readonly wildcard: Wildcard; readonly branch: Branch }[];
  any: Branch | undefined;
}

type Level = ReadonlyMap<string, Choices>;

interface Domain {
  readonly root: Level;
  readonly override: DescriptorRule;
}

/** @param domains - With distinct names; siblings in a domain are distinct. */
export function createDescriptorMatcher(domains: readonly DescriptorDomain[]): DescriptorMatcher {
  const byName = new Map(
    domains.map((domain): [string, Domain] => [
      domain.name,
      { root: levelOf(domain.nodes), override: overrideRule(domain) },
    ]),
  );
  return {
    match: (name, entries) => {
      const domain = byName.get(name);
      return domain === undefined ? undefined : walk(domain.root, entries);
    },
    matchOverride: (name, entries, tokens, spanSeconds) => {
      const rule = byName.get(name)?.override;
      if (rule === undefined) return undefined;
      return { rule, key: shapedKey(tokens, spanSeconds, keyOfAll(entries)) };
    },
  };
}

function walk(root: Level, entries: readonly DescriptorEntry[]): DescriptorMatch | undefined {
  let level: Level | undefined = root;
  let branch: Branch | undefined;
  let values = "";
  for (const { key, value } of entries) {
    branch = choose(level?.get(key), value);
    if (branch === undefined) return undefined;
    if (branch.isOpen) values = appendValue(values, value);
    level = branch.next;
  }
  return branch?.rule === undefined ? undefined : { rule: branch.rule, key: finishKey(values) };
}

function choose(choices: Choices | undefined, value: string): Branch | undefined {
  if (choices === undefined) return undefined;
  const exact = choices.exact.get(value);
  if (exact !== undefined) return exact;
  for (const { wildcard, branch } of choices.patterns) {
    if (wildcard.matches(value)) return branch;
  }
  return choices.any;
}

function levelOf(nodes: readonly DescriptorNode[]): Level {
  const level = new Map<string, Choices>();
  for (const node of nodes) {
    const choices = level.get(node.key) ?? noChoices();
    level.set(node.key, choices);
    const { value } = node;
    const isPattern = value?.includes("*") === true;
    const branch: Branch = {
      rule: node.rule,
      isOpen: value === undefined || (isPattern && !node.isShared),
      next: node.children.length === 0 ? undefined : levelOf(node.children),
    };
    if (value === undefined) choices.any = branch;
    else if (isPattern) choices.patterns.push({ wildcard: new Wildcard(value), branch });
    else choices.exact.set(value, branch);
  }
  return level;
}

function noChoices(): Choices {
  return { exact: new Map(), patterns: [], any: undefined };
}

/** Callers' own limits are counted by the whole descriptor, since no rule says what is open. */
function keyOfAll(entries: readonly DescriptorEntry[]): string {
  let values = "";
  for (const { key, value } of entries) values = appendValue(appendValue(values, key), value);
  return finishKey(values);
}

function overrideRule({ override }: DescriptorDomain): DescriptorRule {
  return {
    name: override.name,
    kind: "limited",
    limit: override,
    unitSeconds: 0,
    label: undefined,
    replaces: [],
    shadow: false,
    deniesAlone: true,
    shownEntries: [],
    metadata: undefined,
  };
}
