/** Builds the policies, each by itself, so that one that is wrong hides no problem of another. */
import type { Limit } from "../core/limit.ts";
import type { KeySource, PathPattern, Policy, PolicyCheck } from "../ports/policy.ts";
import { didYouMean } from "./closest.ts";
import type { FileForward, FilePolicy, FilePolicyCheck } from "./file-shape.ts";
import type { Findings } from "./findings.ts";
import { formatKeySource, parseKeySource } from "./key-source.ts";
import { formatPathPattern, paramNames, parsePathPattern } from "./path-pattern.ts";
import { policySchema } from "./policy-schema.ts";
import { reportDuplicates } from "./resolve-limits.ts";
import { salvage } from "./salvage.ts";
import { type Path, valueAt } from "./tree.ts";

export interface PolicyContext {
  readonly forward: FileForward;
  /** Those that are right; a name in the file that is missing here is a limit with a problem. */
  readonly limits: readonly Limit[];
}

/** @returns The policies that are right, in file order. */
export function resolvePolicies(context: PolicyContext, findings: Findings): Policy[] {
  const items = findings.valueAt(["policies"]);
  if (!Array.isArray(items)) return [];
  reportDuplicates(["policies"], items, "name", findings);
  return items.flatMap((item: unknown, index): Policy[] => {
    const file = salvage(policySchema, item);
    if (file === undefined) return [];
    return [resolvePolicy(file, ["policies", index], context, findings)];
  });
}

function resolvePolicy(
  file: FilePolicy,
  path: Path,
  context: PolicyContext,
  findings: Findings,
): Policy {
  const patterns = file.match.path;
  const paths =
    patterns === undefined
      ? undefined
      : readEach(patterns, [...path, "match", "path"], parsePathPattern, findings);
  const hops = file.trusted_hops ?? context.forward.trusted_hops;
  const checks = file.checks.map((check, index): PolicyCheck => {
    const at: Path = [...path, "checks", index];
    checkLimit(check, at, context.limits, findings);
    const key = readEach(check.key, [...at, "key"], parseKeySource, findings);
    const part = (place: number): Path =>
      typeof check.key === "string" ? [...at, "key"] : [...at, "key", place];
    for (const [place, source] of key.entries()) {
      checkSource(source, { paths, hops, path: part(place) }, findings);
    }
    return { limit: check.limit, key, cost: check.cost };
  });
  reportSameChecks(checks, [...path, "checks"], findings);
  return {
    name: file.name,
    methods: file.match.methods && new Set(file.match.methods),
    paths,
    checks,
    trustedHops: hops ?? 0,
    ipv6Prefix: file.ipv6_prefix ?? context.forward.ipv6_prefix,
  };
}

/** Reads one text or each of a list, and tells what is wrong with any of them. */
function readEach<T>(
  texts: string | readonly string[],
  path: Path,
  read: (text: string) => T | string,
  findings: Findings,
): T[] {
  const single = typeof texts === "string";
  return (single ? [texts] : texts).flatMap((text, index): T[] => {
    const value = read(text);
    if (typeof value !== "string") return [value];
    findings.add(single ? path : [...path, index], value);
    return [];
  });
}

function checkLimit(
  check: FilePolicyCheck,
  path: Path,
  limits: readonly Limit[],
  findings: Findings,
): void {
  const limit = limits.find(({ name }) => name === check.limit);
  if (limit !== undefined) {
    if (check.cost <= limit.burst) return;
    const most = `the burst of ${limit.name}, ${limit.burst}`;
    findings.add([...path, "cost"], `is above ${most}: it could never be admitted`);
    return;
  }
  const names = namesInFile(findings);
  if (names.includes(check.limit)) return;
  const guess = didYouMean(check.limit, names);
  findings.add([...path, "limit"], `is not the name of a limit in this file${guess}`);
}

/** Also those of limits that have problems of their own. */
function namesInFile(findings: Findings): string[] {
  const items = findings.valueAt(["limits"]);
  if (!Array.isArray(items)) return [];
  return items.flatMap((item: unknown) => {
    const name = valueAt(item, ["name"]);
    return typeof name === "string" ? [name] : [];
  });
}

function checkSource(
  source: KeySource,
  at: {
    readonly paths: readonly PathPattern[] | undefined;
    readonly hops: number | undefined;
    readonly path: Path;
  },
  findings: Findings,
): void {
  if (source.kind === "client-address" && at.hops === undefined) {
    findings.add(
      at.path,
      "needs trusted_hops, in forward or in the policy: how many proxies append to " +
        "X-Forwarded-For, 1 when only the one that asks does",
    );
  }
  if (source.kind !== "path") return;
  const without = (at.paths ?? []).find((pattern) => !paramNames(pattern).includes(source.name));
  if (at.paths === undefined) {
    findings.add(at.path, `needs match.path with a segment :${source.name}`);
  } else if (without !== undefined) {
    const guess = didYouMean(source.name, paramNames(without));
    const pattern = formatPathPattern(without);
    findings.add(at.path, `needs a segment :${source.name} in ${pattern} of match.path${guess}`);
  }
}

/** Two equal checks would be one: a request is charged once per limit and key. */
function reportSameChecks(checks: readonly PolicyCheck[], path: Path, findings: Findings): void {
  const seen = new Map<string, number>();
  for (const [index, { limit, key }] of checks.entries()) {
    const same = JSON.stringify([limit, key.map(formatKeySource)]);
    const first = seen.get(same);
    if (first === undefined) seen.set(same, index);
    else {
      const line = findings.lineOf([...path, first]);
      findings.add([...path, index], `has the limit and key of line ${line}; join the two`);
    }
  }
}
