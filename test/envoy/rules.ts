/** Rules of envoyproxy/ratelimit from text, loaded the way the daemon loads them. */
import type { EnvoyConfig } from "../../src/config/config.ts";
import { loadConfig } from "../../src/config/load.ts";
import { formatProblem } from "../../src/config/problem.ts";

export interface RuleFile {
  readonly name: string;
  readonly text: string;
}

export interface RuleOptions {
  /** Fields of `envoy` beside `domains`, YAML. */
  readonly envoy?: string;
  /** Further top-level lines. */
  readonly extra?: string;
}

function load(files: readonly RuleFile[], { envoy = "", extra = "" }: RuleOptions) {
  const pattern = "rules/*.yaml";
  return loadConfig({
    file: {
      path: "a.yaml",
      text: `version: 1\nenvoy: { domains: [${pattern}]${envoy} }\n${extra}`,
    },
    domainFiles: files.map(({ name, text }) => ({ pattern, path: name, text })),
    env: {},
    flags: {},
    hostname: "host-1",
  });
}

/** @throws {Error} With all problems when the rules are refused. */
export function rulesOf(text: string, options: RuleOptions = {}): EnvoyConfig {
  return rulesOfFiles([{ name: "r.yaml", text }], options);
}

export function rulesOfFiles(files: readonly RuleFile[], options: RuleOptions = {}): EnvoyConfig {
  const { config, problems } = load(files, options);
  if (config?.envoy === undefined) throw new Error(problems?.map(formatProblem).join("\n"));
  return config.envoy;
}

/** The problems as lines; empty when the rules are accepted. */
export function ruleProblems(text: string, options: RuleOptions = {}): readonly string[] {
  return filesProblems([{ name: "r.yaml", text }], options);
}

export function filesProblems(
  files: readonly RuleFile[],
  options: RuleOptions = {},
): readonly string[] {
  return load(files, options).problems?.map(formatProblem) ?? [];
}
