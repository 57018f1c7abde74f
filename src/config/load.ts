/**
 * From texts to the effective configuration, or to every problem at once. Pure: no file is read and
 * nothing is kept, so that a reload is the same call again.
 */
import { createHash } from "node:crypto";
import type { z } from "zod";
import type { Config, HeaderShape } from "./config.ts";
import { describeConfig } from "./effective.ts";
import type { FileShape } from "./file-shape.ts";
import { Findings } from "./findings.ts";
import { reportIssues } from "./issues.ts";
import type { Problem } from "./problem.ts";
import { type DomainFile, resolveEnvoy } from "./resolve-envoy.ts";
import { resolveFleet, resolvePodId } from "./resolve-fleet.ts";
import { resolveLimits, toFallback } from "./resolve-limits.ts";
import { resolveListen } from "./resolve-listen.ts";
import { resolveMembership } from "./resolve-membership.ts";
import { resolvePolicies } from "./resolve-policies.ts";
import { resolveRedis } from "./resolve-redis.ts";
import { resolveResp } from "./resolve-resp.ts";
import { salvage } from "./salvage.ts";
import { fileSchema, LIMITS_MAX, sections } from "./schema.ts";
import { type Environment, type Flags, overlay } from "./settings.ts";
import { parseSourceFile } from "./source-file.ts";
import { isMap } from "./tree.ts";

export interface Sources {
  readonly file: { readonly path: string; readonly text: string };
  /** What the patterns of `envoy.domains` found; see `readDomainFiles`. */
  readonly domainFiles?: readonly DomainFile[];
  readonly env: Environment;
  /** By name without dashes; `pod-id` and the names in `SETTINGS`. */
  readonly flags: Flags;
  /** Pod id when neither flag nor environment gives one. */
  readonly hostname: string;
}

export type Loaded =
  | { readonly config: Config; readonly problems?: undefined }
  | { readonly config?: undefined; readonly problems: readonly Problem[] };

/** Precedence: flags, environment, file, defaults. Never throws for anything its sources hold. */
export function loadConfig(sources: Sources): Loaded {
  const file = parseSourceFile(sources.file.path, sources.file.text);
  const unreadable = file.value === undefined && file.problems.length > 0;
  const overlaid = unreadable
    ? { value: undefined, setter: () => undefined }
    : overlay(file.value ?? undefined, sources.env, sources.flags);
  const findings = new Findings(file, overlaid);
  if (unreadable) return { problems: findings.problems };
  if (file.value === undefined || file.value === null) {
    findings.add([], "the file is empty; it must hold at least version: 1 and limits");
    return { problems: findings.problems };
  }
  if (!isMap(file.value)) {
    findings.add([], "the file must be a map with version, limits and other fields");
    return { problems: findings.problems };
  }
  const whole = fileSchema.safeParse(overlaid.value);
  if (!whole.success) reportIssues(whole.error.issues, [], findings);
  const config = resolve(sources, findings);
  return findings.problems.length > 0 || config === undefined
    ? { problems: findings.problems }
    : { config };
}

/** Puts the sections together; those that the schema refused are left out of the further checks. */
function resolve(sources: Sources, findings: Findings): Config | undefined {
  const { file, env } = sources;
  const read = <K extends keyof FileShape>(name: K): FileShape[K] | undefined =>
    salvage(sections[name] as z.ZodType<FileShape[K]>, findings.valueAt([name]));
  const podId = resolvePodId(sources, findings);
  const listen = then(read("listen"), (section) => resolveListen(section, findings));
  const embedded = findings.valueAt(["redis"]) === undefined;
  const redis = then(read("redis"), (section) =>
    resolveRedis(section, { file: file.path, env }, findings),
  );
  const fleet = resolveFleet(read("fleet"), embedded, findings);
  const membership = then(read("membership"), (section) =>
    resolveMembership(section, { embedded, env, configFile: file.path }, findings),
  );
  const headers = then(read("headers"), (shapes) => checkHeaders(shapes, findings));
  const fallback = read("fallback") ?? sections.fallback.parse(undefined);
  const reconcile = read("reconcile") ?? sections.reconcile.parse(undefined);
  const defaults = { fallback, intervalUs: reconcile.interval };
  const limits = resolveLimits(defaults, findings);
  const envoy = then(read("envoy"), (section) => {
    const domainDefaults = { ...defaults, onDeny: section.on_deny };
    return resolveEnvoy(section, sources.domainFiles ?? [], domainDefaults, findings);
  });
  const fileResp = read("resp") ?? sections.resp.parse(undefined);
  const resp = resolveResp(fileResp, listen, defaults, findings);
  requireLimits(findings);
  const forward = read("forward") ?? sections.forward.parse(undefined);
  const policies = resolvePolicies({ forward, limits }, findings);
  const plain = {
    decisionTimeoutUs: read("decision_timeout"),
    drainTimeoutUs: read("drain_timeout"),
    keysMax: read("keys_max"),
    workers: read("workers"),
    logLevel: read("log_level"),
  };
  const config = complete({ fleet, listen, membership, headers, ...plain });
  if (config === undefined) return undefined;
  const effective: Omit<Config, "hash"> = {
    ...config,
    ops: { showKeys: (read("ops") ?? sections.ops.parse(undefined)).show_keys },
    file: file.path,
    podId,
    redis,
    reconcile: { intervalUs: reconcile.interval },
    fallback: toFallback(fallback),
    limits,
    policies,
    envoy,
    resp,
  };
  return { ...effective, hash: hashConfig(effective) };
}

type Complete<T> = { readonly [K in keyof T]: Exclude<T[K], undefined> };

/** The same object when no field is undefined. */
function complete<T extends object>(parts: T): Complete<T> | undefined {
  return Object.values(parts).includes(undefined) ? undefined : (parts as Complete<T>);
}

function then<T, R>(value: T | undefined, use: (value: T) => R): R | undefined {
  return value === undefined ? undefined : use(value);
}

/** Three of the shapes write the same header names with different meanings. */
function checkHeaders(shapes: readonly HeaderShape[], findings: Findings): readonly HeaderShape[] {
  if (shapes.filter((shape) => shape !== "ietf").length > 1) {
    findings.add(["headers"], "may hold one of x-delta, x-epoch and draft-03: they share names");
  } else if (new Set(shapes).size < shapes.length) {
    findings.add(["headers"], "names a shape twice");
  }
  return shapes;
}

/** A sidecar without any limit would admit everything, which nobody installs it for. */
function requireLimits(findings: Findings): void {
  if (["limits", "envoy"].some((name) => findings.valueAt([name]) !== undefined)) return;
  if (findings.valueAt(["resp", "inline_limits"]) === true) return;
  findings.add(["limits"], `is missing; must be a list of 1 to ${LIMITS_MAX} items`);
}

/** SHA-256, hex, over what should be equal in all pods of a fleet. */
export function hashConfig(config: Omit<Config, "hash">): string {
  return createHash("sha256")
    .update(JSON.stringify(describeConfig(config)))
    .update(config.envoy?.textHash ?? "")
    .digest("hex");
}
