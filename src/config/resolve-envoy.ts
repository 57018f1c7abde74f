/** Puts the rules for Envoy together: several files, one domain each. */
import { createHash } from "node:crypto";
import type { Limit } from "../core/limit.ts";
import type { DescriptorDomain } from "../ports/descriptors.ts";
import type { EnvoyConfig } from "./config.ts";
import { DomainProblems } from "./domain-problems.ts";
import { type FileDomain, readDomain } from "./domain-reader.ts";
import { type DomainDefaults, translateDomain } from "./domain-rules.ts";
import type { FileEnvoy } from "./file-shape.ts";
import type { Findings } from "./findings.ts";
import type { Problem } from "./problem.ts";

/** Most files read; a pattern in the wrong folder must not read the whole disk. */
export const DOMAIN_FILES_MAX = 500;

/** Most limits of all domains together: each has its own series of metrics. */
export const DOMAIN_LIMITS_MAX = 10_000;

/** One file that a pattern of `envoy.domains` found, read. */
export type DomainFile =
  | { readonly pattern: string; readonly path: string; readonly text: string }
  | { readonly pattern: string; readonly problem: Problem }
  /** Another pattern has found this one already. */
  | { readonly pattern: string; readonly repeats: string };

export function resolveEnvoy(
  envoy: FileEnvoy,
  files: readonly DomainFile[],
  defaults: DomainDefaults,
  findings: Findings,
): EnvoyConfig {
  for (const [index, pattern] of envoy.domains.entries()) {
    if (files.some((file) => file.pattern === pattern)) continue;
    findings.add(["envoy", "domains", index], "finds no file");
  }
  if (files.length > DOMAIN_FILES_MAX) {
    findings.add(["envoy", "domains"], `finds more than ${DOMAIN_FILES_MAX} files`);
  }
  const byName = new Map<string, FileDomain>();
  const domains: DescriptorDomain[] = [];
  const limits: Limit[] = [];
  const hash = createHash("sha256");
  for (const file of files) {
    if ("repeats" in file) continue;
    if ("problem" in file) {
      findings.include([file.problem]);
      continue;
    }
    hash.update(`${file.text.length}:${file.text}`);
    const { file: domain, problems } = readDomain(file.path, file.text);
    findings.include(problems);
    if (domain === undefined || problems.length > 0) continue;
    const more = new DomainProblems(file.path);
    const first = byName.get(domain.domain);
    if (first !== undefined) {
      const message = `is the domain of ${first.source} too; a domain has one file`;
      more.addAt(["domain"], domain.domainPosition, message, domain.domain);
    } else {
      byName.set(domain.domain, domain);
      const translated = translateDomain(domain, defaults, more);
      domains.push(translated.domain);
      limits.push(...translated.limits);
    }
    findings.include(more.all);
  }
  if (limits.length > DOMAIN_LIMITS_MAX) {
    const message = `holds ${limits.length} limits; at most ${DOMAIN_LIMITS_MAX} are kept`;
    findings.add(["envoy", "domains"], message);
  }
  return {
    patterns: envoy.domains,
    onDeny: envoy.on_deny,
    domains,
    limits,
    textHash: hash.digest("hex"),
  };
}
