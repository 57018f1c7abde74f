/**
 * Decisions by the values of descriptors, for rules whose author asked to see them
 * (`detailed_metric`, `value_to_metric`). Values are callers' text, so their number is bounded:
 * beyond it they are counted together.
 */
import type { Outcome } from "../core/tally.ts";
import type { DescriptorEntry, DescriptorRule } from "../ports/descriptors.ts";

/** Most values shown of one rule, and of all together. */
const VALUES_PER_RULE_MAX = 100;
const VALUES_MAX = 2_000;

const TEXT_LENGTH_MAX = 128;

/** What is counted beyond the maximum. */
const OTHERS = "other";

export interface ShownDecisions {
  readonly rule: string;
  readonly descriptor: string;
  readonly counts: Record<Outcome, number>;
}

export class ShownValues {
  readonly #byRule = new Map<string, Map<string, ShownDecisions>>();
  #values = 0;

  count(rule: DescriptorRule, entries: readonly DescriptorEntry[], outcome: Outcome): void {
    let values = this.#byRule.get(rule.name);
    if (values === undefined) {
      values = new Map();
      this.#byRule.set(rule.name, values);
    }
    this.#of(rule, values, textOf(rule, entries)).counts[outcome] += 1;
  }

  all(): readonly ShownDecisions[] {
    return [...this.#byRule.values()].flatMap((values) => [...values.values()]);
  }

  #of(rule: DescriptorRule, values: Map<string, ShownDecisions>, text: string): ShownDecisions {
    const isFull = values.size >= VALUES_PER_RULE_MAX || this.#values >= VALUES_MAX;
    const descriptor = values.has(text) || !isFull ? text : OTHERS;
    const known = values.get(descriptor);
    if (known !== undefined) return known;
    const counts = { allowed: 0, denied: 0, shadow_denied: 0 };
    const shown = { rule: rule.name, descriptor, counts };
    values.set(descriptor, shown);
    if (descriptor !== OTHERS) this.#values += 1;
    return shown;
  }
}

function textOf(rule: DescriptorRule, entries: readonly DescriptorEntry[]): string {
  const text = rule.shownEntries
    .map((index) => `${entries[index]?.key}=${entries[index]?.value}`)
    .join(",");
  return text.slice(0, TEXT_LENGTH_MAX).replace(/[^\x20-\x7e]/g, "?");
}
