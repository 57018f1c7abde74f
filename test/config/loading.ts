/** Loads a configuration from text the way the tests want it. */
import type { Config } from "../../src/config/config.ts";
import { loadConfig } from "../../src/config/load.ts";
import { formatProblem } from "../../src/config/problem.ts";
import type { Environment, Flags } from "../../src/config/settings.ts";

export interface Outside {
  readonly env?: Environment;
  readonly flags?: Flags;
  readonly hostname?: string;
  readonly path?: string;
}

/** The problems as lines; empty when the configuration is accepted. */
export function problemsOf(text: string, outside: Outside = {}): readonly string[] {
  return load(text, outside).problems?.map(formatProblem) ?? [];
}

/** The configuration. @throws {Error} With all problems when it is refused. */
export function configOf(text: string, outside: Outside = {}): Config {
  const { config, problems } = load(text, outside);
  if (config === undefined) throw new Error(problems.map(formatProblem).join("\n"));
  return config;
}

function load(text: string, outside: Outside) {
  return loadConfig({
    file: { path: outside.path ?? "a.yaml", text },
    env: outside.env ?? {},
    flags: outside.flags ?? {},
    hostname: outside.hostname ?? "host-1",
  });
}

/** A file that is accepted, with lines added at its end. */
export function minimal(...lines: readonly string[]): string {
  return ["version: 1", "limits: [{ name: a, rate: 10/s }]", ...lines].join("\n");
}

/** A file with one limit `a` that has these fields, from line 4 on. */
export function limitWith(...lines: readonly string[]): string {
  return ["version: 1", "limits:", "  - name: a", ...lines.map((line) => `    ${line}`)].join("\n");
}
