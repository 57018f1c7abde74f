/** Policies and requests for tests, as short as they can be said. */
import { parseKeySource } from "../../src/config/key-source.ts";
import { parsePathPattern } from "../../src/config/path-pattern.ts";
import { PolicyTable } from "../../src/policy/policy-table.ts";
import type { KeySource, OriginalRequest, PathPattern, Policy } from "../../src/ports/policy.ts";

/** A source as a file writes it. */
export function source(text: string): KeySource {
  const parsed = parseKeySource(text);
  if (typeof parsed === "string") throw new Error(`${text} ${parsed}`);
  return parsed;
}

/** A pattern as a file writes it. */
export function pattern(text: string): PathPattern {
  const parsed = parsePathPattern(text);
  if (typeof parsed === "string") throw new Error(`${text} ${parsed}`);
  return parsed;
}

export interface PolicySketch {
  readonly name?: string;
  readonly methods?: readonly string[];
  readonly path?: readonly string[];
  readonly limit?: string;
  readonly key?: readonly string[];
  readonly trustedHops?: number;
  readonly ipv6Prefix?: number;
}

/** A policy with one check. */
export function policyOf(sketch: PolicySketch): Policy {
  const { name = "p", methods, path, limit = name, key = ["const:all"] } = sketch;
  return {
    name,
    methods: methods && new Set(methods),
    paths: path?.map(pattern),
    checks: [{ limit, key: key.map(source), cost: 1 }],
    trustedHops: sketch.trustedHops ?? 0,
    ipv6Prefix: sketch.ipv6Prefix ?? 64,
  };
}

export interface RequestSketch {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly peer?: string;
}

export function requestOf(target: string, sketch: RequestSketch = {}): OriginalRequest {
  const { method = "GET", headers = {}, peer } = sketch;
  return {
    method,
    target,
    header: (name) => [headers[name] ?? []].flat(),
    peer,
  };
}

/** The key that a request gets from these sources, under a policy of that name. */
export function keyFor(
  key: readonly string[],
  target = "/",
  request: RequestSketch = {},
  policy: PolicySketch = {},
): string | undefined {
  const table = new PolicyTable([policyOf({ ...policy, name: "p", key })]);
  return table.named("p", requestOf(target, request))?.[0]?.key;
}
