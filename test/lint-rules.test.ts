/**
 * The rules of the linter that hold the architecture, each shown to fire.
 *
 * A rule that is spelled wrongly in biome.json is silently no rule. So this test plants one
 * violation per rule in a copy of the project's skeleton, lints it once with the real
 * configuration, and expects each finding where it was planted, and none in the files that obey.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const BIOME = join(ROOT, "node_modules", ".bin", "biome");

/** A file of the planted tree: one statement per line, and what the linter must say of each. */
interface Planted {
  readonly path: string;
  readonly lines: readonly PlantedLine[];
}

interface PlantedLine {
  readonly says: string;
  readonly source: string;
  readonly rule: string;
  /** The rule must be reported for the line, or must not. */
  readonly reported: boolean;
}

/** [folder or file, what it may import, what it may not]. */
const IMPORT_TABLE: readonly [string, readonly string[], readonly string[]][] = [
  ["src/core", ["./units.ts"], ["../ports/clock.ts", "../server/http.ts", "node:fs", "zod"]],
  ["src/ports", ["./clock.ts", "../core/units.ts"], ["../config/load.ts", "node:fs", "ioredis"]],
  ...["config", "membership", "server", "envoy", "policy", "observe", "runtime"].map(
    (room): [string, string[], string[]] => [
      `src/${room}`,
      ["./sibling.ts", "../core/units.ts", "../ports/clock.ts", "node:fs", "yaml"],
      [
        `../${room === "server" ? "observe" : "server"}/sibling.ts`,
        "../store/redis/keys.ts",
        "../daemon.ts",
        "../cli/serve.ts",
        "../../sim/world.ts",
        "../../test/support/count.ts",
      ],
    ],
  ),
  [
    "src/store/redis",
    ["./keys.ts", "../../core/units.ts", "../../ports/clock.ts", "ioredis", "node:fs"],
    ["../embedded/store.ts", "../../config/load.ts", "../../daemon.ts", "../../../sim/world.ts"],
  ],
  ["src/store/embedded", ["../../core/units.ts"], ["../redis/keys.ts", "../../server/http.ts"]],
  [
    "src/cli",
    ["../daemon.ts", "../config/load.ts", "../core/units.ts", "node:fs"],
    ["../server/http.ts", "../server/openapi.ts", "../store/redis/keys.ts", "../observe/logger.ts"],
  ],
  ["src/cli/openapi.ts", ["../server/openapi.ts"], ["../server/http.ts"]],
  ["src/cli/simulate.ts", ["../../sim/simulate/simulate.ts"], ["../../sim/world.ts"]],
  ["src/main.ts", ["./cli/serve.ts"], ["./daemon.ts", "./server/http.ts"]],
  ["src/daemon.ts", ["./server/http.ts", "./store/redis/keys.ts"], ["./cli/serve.ts"]],
  ["src/primary.ts", ["./server/http.ts", "./workers/messages.ts"], ["./cli/serve.ts"]],
  ["src/workers", ["../ports/clock.ts", "./messages.ts"], ["../primary.ts", "../server/http.ts"]],
  [
    "sim",
    ["./world.ts", "../src/core/units.ts", "../src/config/load.ts", "../src/store/embedded/a.ts"],
    ["../src/daemon.ts", "../src/runtime/system-clock.ts", "../src/store/redis/keys.ts"],
  ],
  [
    "sim/scenarios",
    ["../world.ts", "../../src/core/units.ts", "../../src/ports/clock.ts"],
    ["../../src/server/http.ts", "../../src/store/redis/keys.ts"],
  ],
  ["sim/redis-store.ts", ["../src/store/redis/keys.ts"], ["../src/daemon.ts", "../bench/load.ts"]],
];

const GLOBALS = [
  "Date",
  "performance",
  "setTimeout",
  "setInterval",
  "setImmediate",
  "queueMicrotask",
  "process",
  "crypto",
  "console",
  "fetch",
  "Buffer",
  "globalThis",
];

const STATEMENTS: readonly (readonly [says: string, source: string, rule: string])[] = [
  ["there is no default export", "export default 1;", "noDefaultExport"],
  ["there is no explicit any", "export const value: any = 1;", "noExplicitAny"],
  ["nothing is written to the console", 'console.log("x");', "noConsole"],
  [
    "no parameter is assigned to",
    "export function f(a: number): number { a = 2; return a; }",
    "noParameterAssign",
  ],
  [
    "Node's modules are named with node:",
    'import { join } from "path"; join();',
    "useNodejsImportProtocol",
  ],
  [
    "an import of types only says so",
    'import { C } from "../ports/clock.ts"; export const c: C | null = null;',
    "useImportType",
  ],
  [
    "no promise is left floating",
    "async function later(): Promise<void> {} export function f(): void { later(); }",
    "noFloatingPromises",
  ],
  [
    "no function is longer than 70 lines",
    `export function f(): number { let sum = 0;\n${"  sum += 1;\n".repeat(70)}  return sum; }`,
    "noExcessiveLinesPerFunction",
  ],
  ["there is no enum", "export enum Colour { red = 1 }", "noEnum"],
  ["there is no barrel file", 'export * from "./other.ts";', "noReExportAll"],
];

const CODE: readonly (readonly [says: string, path: string, reported: boolean])[] = [
  ["the core draws no chance", "src/core/draw.ts", true],
  ["the simulator draws no chance", "sim/draw.ts", true],
  ["a scenario draws no chance", "sim/scenarios/draw.ts", true],
  ["an adapter may draw chance", "src/runtime/draw.ts", false],
];

function plantedTree(): Planted[] {
  const imports = IMPORT_TABLE.map(([where, allowed, denied]) => ({
    path: where.endsWith(".ts") ? where : `${where}/imports.ts`,
    lines: [
      ...allowed.map((specifier) => importLine(where, specifier, false)),
      ...denied.map((specifier) => importLine(where, specifier, true)),
    ],
  }));
  const globals = ["src/core", "src/runtime"].map((folder) => ({
    path: `${folder}/globals.ts`,
    lines: GLOBALS.map((name) => ({
      says: `${folder} ${folder === "src/core" ? "may not" : "may"} touch the global ${name}`,
      source: `export const used${name}: unknown = ${name};`,
      rule: "noRestrictedGlobals",
      reported: folder === "src/core",
    })),
  }));
  const draws = CODE.map(([says, path, reported]) => ({
    path,
    lines: [{ says, source: "export const d: number = Math.random();", rule: "plugin", reported }],
  }));
  const statements = STATEMENTS.map(([says, source, rule], index) => ({
    path: `src/observe/statement-${index}.ts`,
    lines: [{ says, source, rule, reported: true }],
  }));
  return [...imports, ...globals, ...draws, ...statements, ...CYCLE];
}

const CYCLE: readonly Planted[] = (["a", "b"] as const).map((name) => ({
  path: `src/observe/cycle-${name}.ts`,
  lines: [
    {
      says: `there is no import cycle, seen from its end ${name}`,
      source: `import { x } from "./cycle-${name === "a" ? "b" : "a"}.ts"; export { x };`,
      rule: "noImportCycles",
      reported: true,
    },
  ],
}));

function importLine(where: string, specifier: string, reported: boolean): PlantedLine {
  return {
    says: `${where} ${reported ? "may not" : "may"} import ${specifier}`,
    source: `import "${specifier}";`,
    rule: "noRestrictedImports",
    reported,
  };
}

interface BiomeReport {
  readonly diagnostics: readonly {
    readonly category: string;
    readonly location: { readonly path: string; readonly start: { readonly line: number } };
  }[];
}

const TREE = plantedTree();
const findings = new Set<string>();
let scratch = "";

beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "aliquot-lint-"));
  for (const name of ["biome.json", "lint", "tsconfig.json", "package.json", ".gitignore"]) {
    cpSync(join(ROOT, name), join(scratch, name), { recursive: true });
  }
  for (const { path, lines } of TREE) {
    mkdirSync(dirname(join(scratch, path)), { recursive: true });
    writeFileSync(join(scratch, path), `${lines.map(({ source }) => source).join("\n")}\n`);
  }
  const run = spawnSync(BIOME, ["lint", "--reporter=json", "--max-diagnostics=none", "."], {
    cwd: scratch,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  const report = JSON.parse(run.stdout) as BiomeReport;
  for (const { category, location } of report.diagnostics) {
    findings.add(`${location.path}:${location.start.line}:${category.split("/").at(-1)}`);
  }
});

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe("the linter", () => {
  const cases = TREE.flatMap(({ path, lines }) =>
    lines.map((line, index) => ({ ...line, path, at: index + 1 })),
  );

  it.each(cases)("holds that $says", ({ path, at, rule, reported }) => {
    expect(findings.has(`${path}:${at}:${rule}`)).toBe(reported);
  });

  it("has nothing to say of a file that obeys", () => {
    expect([...findings].filter((finding) => finding.startsWith("src/runtime/draw.ts"))).toEqual(
      [],
    );
  });
});
