/** Translates the rules of a domain, once at load: a limit per counted rule, and their tree. */
import { UNIT_SECONDS } from "../core/calendar.ts";
import { defineLimit, type Limit, type OnDeny } from "../core/limit.ts";
import { shapedLimit } from "../core/shaped-limits.ts";
import { US_PER_SECOND } from "../core/units.ts";
import type { DescriptorDomain, DescriptorNode, DescriptorRule } from "../ports/descriptors.ts";
import { overrideName, ruleName } from "./domain-names.ts";
import type { DomainProblems } from "./domain-problems.ts";
import type { FileDescriptor, FileDomain, FileRateLimit } from "./domain-reader.ts";
import type { FileDescriptorTerms } from "./file-shape.ts";
import { type LimitDefaults, resolveTerms } from "./resolve-limits.ts";

export interface DomainDefaults extends LimitDefaults {
  readonly onDeny: OnDeny;
}

export interface TranslatedDomain {
  readonly domain: DescriptorDomain;
  /** In file order, the one for overrides last. */
  readonly limits: readonly Limit[];
}

export function translateDomain(
  file: FileDomain,
  defaults: DomainDefaults,
  problems: DomainProblems,
): TranslatedDomain {
  const translator = new Translator(file.domain, defaults, problems);
  const nodes = translator.nodes(file.descriptors, []);
  const override = overrideLimit(file.domain, defaults);
  return {
    domain: { name: file.domain, nodes, override },
    limits: [...translator.limits, override],
  };
}

/** The rate of the limit itself is never used: every key that is counted here brings its own. */
function overrideLimit(domain: string, defaults: DomainDefaults): Limit {
  const { onDeny } = defaults;
  return shapedLimit({ ...resolveTerms({}, defaults), name: overrideName(domain), onDeny });
}

class Translator {
  readonly limits: Limit[] = [];
  readonly #domain: string;
  readonly #defaults: DomainDefaults;
  readonly #problems: DomainProblems;

  constructor(domain: string, defaults: DomainDefaults, problems: DomainProblems) {
    this.#domain = domain;
    this.#defaults = defaults;
    this.#problems = problems;
  }

  /** @param above - The descriptors around these, from the domain's root. */
  nodes(
    descriptors: readonly FileDescriptor[],
    above: readonly FileDescriptor[],
  ): readonly DescriptorNode[] {
    return descriptors.map((descriptor) => {
      const steps = [...above, descriptor];
      return {
        key: descriptor.key,
        value: descriptor.value,
        isShared: descriptor.shareThreshold,
        rule: this.#rule(descriptor, steps),
        children: this.nodes(descriptor.descriptors, steps),
      };
    });
  }

  #rule(descriptor: FileDescriptor, steps: readonly FileDescriptor[]): DescriptorRule | undefined {
    const { rateLimit, shadowMode } = descriptor;
    if (rateLimit === undefined) return undefined;
    const name = ruleName(this.#domain, steps);
    const { unit, requestsPerUnit } = rateLimit;
    const common = {
      name,
      unitSeconds: unit === undefined ? 0 : UNIT_SECONDS[unit],
      label: rateLimit.name,
      replaces: rateLimit.replaces,
      shadow: shadowMode,
      deniesAlone: !descriptor.quotaMode,
      shownEntries: shownEntries(descriptor, steps),
      metadata: descriptor.metadata,
    };
    if (unit === undefined) return { ...common, kind: "unlimited", limit: undefined };
    if (requestsPerUnit === 0) return { ...common, kind: "blocked", limit: undefined };
    const limit = this.#limit(name, descriptor, rateLimit, common.unitSeconds);
    if (limit === undefined) return undefined;
    this.limits.push(limit);
    return { ...common, kind: "limited", limit };
  }

  #limit(
    name: string,
    descriptor: FileDescriptor,
    rateLimit: FileRateLimit,
    unitSeconds: number,
  ): Limit | undefined {
    const terms: FileDescriptorTerms = descriptor.terms ?? {};
    const path = descriptor.path;
    try {
      return defineLimit({
        ...resolveTerms(terms, this.#defaults),
        name,
        tokens: rateLimit.requestsPerUnit,
        spanUs: unitSeconds * US_PER_SECOND,
        burst: terms.burst ?? rateLimit.requestsPerUnit,
        shadow: descriptor.shadowMode,
        onDeny: terms.on_deny ?? this.#defaults.onDeny,
      });
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.#problems.addAt([...path, "rate_limit"], rateLimit.position, error.message);
      return undefined;
    }
  }
}

/** `detailed_metric` shows all values on the way, `value_to_metric` those of its own place. */
function shownEntries(
  descriptor: FileDescriptor,
  steps: readonly FileDescriptor[],
): readonly number[] {
  return [...steps.keys()].filter(
    (index) => descriptor.detailedMetric || steps[index]?.valueToMetric === true,
  );
}
