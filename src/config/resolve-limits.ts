/** Builds the limits, each by itself, so that one that is wrong hides no problem of another. */
import {
  defineLimit,
  type Fallback,
  type Limit,
  type LimitSpec,
  type Mode,
} from "../core/limit.ts";
import { type DurationUs, type Tokens, US_PER_SECOND } from "../core/units.ts";
import type { FileDescriptorTerms, FileFallback, FileLimit, FileOverride } from "./file-shape.ts";
import type { Findings } from "./findings.ts";
import { limitSchema } from "./limit-schema.ts";
import type { Rate } from "./rate.ts";
import { salvage } from "./salvage.ts";
import { isMap, type Path, valueAt } from "./tree.ts";

export interface LimitDefaults {
  readonly fallback: FileFallback;
  readonly intervalUs: DurationUs;
}

/** @returns The limits that are right, in file order. */
export function resolveLimits(defaults: LimitDefaults, findings: Findings): Limit[] {
  const items = findings.valueAt(["limits"]);
  if (!Array.isArray(items)) return [];
  reportDuplicates(["limits"], items, "name", findings);
  return items.flatMap((item: unknown, index): Limit[] => {
    const path: Path = ["limits", index];
    const overrides = valueAt(item, ["overrides"]);
    if (Array.isArray(overrides)) {
      reportDuplicates([...path, "overrides"], overrides, "key", findings);
    }
    const file = salvage(limitSchema, item);
    if (file === undefined) return [];
    const limit = resolveLimit(file, path, defaults, findings);
    return limit === undefined ? [] : [limit];
  });
}

/** One second of the rate, at least one token. */
export function defaultBurst(rate: Rate): Tokens {
  return Math.max(1, Math.floor((rate.tokens * US_PER_SECOND) / rate.spanUs));
}

export function toFallback(file: FileFallback): Fallback {
  return { policy: file.policy, margin: file.margin, maxPods: file.max_pods };
}

/** What a limit says about itself beside its rate and burst, with the defaults filled in. */
export function resolveTerms(
  own: Pick<FileDescriptorTerms, "mode" | "fallback">,
  defaults: LimitDefaults,
): Pick<LimitSpec, "intervalUs" | "fallback"> & { readonly mode: Mode | "auto" } {
  const fallback = typeof own.fallback === "string" ? { policy: own.fallback } : own.fallback;
  const general = defaults.fallback;
  return {
    intervalUs: defaults.intervalUs,
    mode: own.mode ?? "auto",
    fallback: toFallback({
      policy: fallback?.policy ?? general.policy,
      margin: fallback?.margin ?? general.margin,
      max_pods: fallback?.max_pods ?? general.max_pods,
    }),
  };
}

function resolveLimit(
  file: FileLimit,
  path: Path,
  defaults: LimitDefaults,
  findings: Findings,
): Limit | undefined {
  const spec = {
    ...resolveTerms(file, defaults),
    ...(file.tolerance !== undefined && { tolerance: file.tolerance }),
    name: file.name,
    shadow: file.shadow,
    onDeny: file.on_deny,
  };
  const build = (from: FileLimit | FileOverride, at: Path, overrides?: Map<string, Limit>) => {
    const burst = from.burst ?? defaultBurst(from.rate);
    try {
      return defineLimit({ ...spec, ...from.rate, burst, ...(overrides && { overrides }) });
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      findings.add([...at, from.burst === undefined ? "rate" : "burst"], error.message);
      return undefined;
    }
  };
  const overrides = new Map<string, Limit>();
  for (const [index, override] of (file.overrides ?? []).entries()) {
    const limit = build(override, [...path, "overrides", index]);
    if (limit !== undefined) overrides.set(override.key, limit);
  }
  return build(file, path, overrides);
}

export function reportDuplicates(
  path: Path,
  items: readonly unknown[],
  name: "name" | "key",
  findings: Findings,
): void {
  const seen = new Map<string, number>();
  for (const [index, item] of items.entries()) {
    const value = isMap(item) ? item[name] : undefined;
    if (typeof value !== "string") continue;
    const first = seen.get(value);
    if (first === undefined) {
      seen.set(value, index);
    } else {
      const line = findings.lineOf([...path, first, name]);
      findings.add([...path, index, name], `is a duplicate of line ${line}; each must be unique`);
    }
  }
}
