/**
 * Envoy's descriptors, and the rules that a configuration holds for them.
 *
 * A descriptor is a path of keys and values ("plan = free, user = alice"). The rules of a domain
 * are a tree of the same form; the rule at the end of a descriptor's path says what limits it.
 */
import type { Limit } from "../core/limit.ts";

export interface DescriptorEntry {
  readonly key: string;
  readonly value: string;
}

/** `limited`: by `limit`; `blocked`: nothing passes; `unlimited`: everything passes uncounted. */
export type RuleKind = "limited" | "blocked" | "unlimited";

export interface DescriptorRule {
  /** Unique; for a limited rule the name of its limit. */
  readonly name: string;
  readonly kind: RuleKind;
  /** Set exactly for a limited rule. */
  readonly limit: Limit | undefined;
  /** The unit that the author stated the rule in, in seconds; 0 for an unlimited rule. */
  readonly unitSeconds: number;
  /** A name that the author gave, for callers and for `replaces`. */
  readonly label: string | undefined;
  /** Labels of rules that do not count for a call for which this rule does. */
  readonly replaces: readonly string[];
  /** Denials are counted but not enforced. */
  readonly shadow: boolean;
  /** False: denies a call only together with all other rules of this kind that the call meets. */
  readonly deniesAlone: boolean;
  /** Places in the descriptor whose values metrics may show; empty for none. */
  readonly shownEntries: readonly number[];
  /** Handed to the caller when the rule passes: a JSON object. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
}

/** One place in the tree. */
export interface DescriptorNode {
  readonly key: string;
  /** Undefined stands for every value; `*` in it for any text. */
  readonly value: string | undefined;
  /** All values that a pattern stands for are counted together. */
  readonly isShared: boolean;
  readonly rule: DescriptorRule | undefined;
  readonly children: readonly DescriptorNode[];
}

export interface DescriptorDomain {
  readonly name: string;
  readonly nodes: readonly DescriptorNode[];
  /** Counts what callers limit themselves; its `overrides` are `ShapedLimits`. */
  readonly override: Limit;
}

export interface DescriptorMatch {
  readonly rule: DescriptorRule;
  /** What a limited descriptor is counted under, within the rule's limit. */
  readonly key: string;
}

export interface DescriptorMatcher {
  /** The rule for a descriptor; undefined when none is for it. */
  match(domain: string, entries: readonly DescriptorEntry[]): DescriptorMatch | undefined;
  /**
   * The rule for a descriptor whose caller brought `tokens` per `spanSeconds`; undefined in a
   * domain that is not configured. When that rate cannot be counted, the rule's limit has no
   * override for the key.
   */
  matchOverride(
    domain: string,
    entries: readonly DescriptorEntry[],
    tokens: number,
    spanSeconds: number,
  ): DescriptorMatch | undefined;
}
