import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { domainPatterns, readDomainFiles } from "../../src/config/domain-files.ts";
import { loadConfig } from "../../src/config/load.ts";
import { formatProblem } from "../../src/config/problem.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "aliquot-rules-"));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, text = `domain: ${path}\n`): void {
  mkdirSync(join(folder, path, ".."), { recursive: true });
  writeFileSync(join(folder, path), text);
}

/** Names of the files found, relative to the folder, with the pattern each was found by. */
async function found(...patterns: readonly string[]): Promise<readonly string[]> {
  const files = await readDomainFiles(join(folder, "aliquot.yaml"), patterns);
  return files.flatMap((file) => {
    if ("repeats" in file) return [];
    return "problem" in file ? formatProblem(file.problem) : file.path.slice(folder.length + 1);
  });
}

describe("the files that envoy.domains names", () => {
  it("are found by name and by pattern, from where the configuration is, in order", async () => {
    for (const name of ["b.yaml", "a.yaml", "c.yml", "rules/x1.yaml", "rules/x2.yaml"]) write(name);
    expect(await found("c.yml", "*.yaml", "rules/x?.yaml")).toEqual([
      "c.yml",
      "a.yaml",
      "b.yaml",
      "rules/x1.yaml",
      "rules/x2.yaml",
    ]);
    expect(await found(`${folder}/*/x1.yaml`)).toEqual(["rules/x1.yaml"]);
  });

  it("are read once, whatever a ConfigMap keeps beside them", async () => {
    write("rules/..2026/d.yaml");
    symlinkSync("..2026", join(folder, "rules/..data"));
    symlinkSync("..data/d.yaml", join(folder, "rules/d.yaml"));
    expect(await found("rules/*.yaml", "rules/*", "*/*.yaml")).toEqual(["rules/d.yaml"]);
  });

  it("may be found by two patterns, and count once", async () => {
    write("d.yaml");
    const path = join(folder, "aliquot.yaml");
    const text = "version: 1\nenvoy: { domains: [d.yaml, '*.yaml'] }\n";
    const domainFiles = await readDomainFiles(path, domainPatterns({ path, text }));
    const sources = { file: { path, text }, domainFiles, env: {}, flags: {}, hostname: "h" };
    expect(loadConfig(sources).config?.envoy?.domains).toHaveLength(1);
  });

  it("have no patterns of their own in their names", async () => {
    write("a+b.yaml");
    write("aab.yaml");
    expect(await found("a+*.yaml")).toEqual(["a+b.yaml"]);
  });

  it("are none where there is no such folder, and problems where they cannot be read", async () => {
    mkdirSync(join(folder, "sub"));
    expect(await found("nowhere/*.yaml", "sub*")).toEqual([]);
    expect(await found("none.yaml", "sub")).toEqual([
      expect.stringMatching(/none\.yaml: does not exist/),
      expect.stringMatching(/sub: is a directory/),
    ]);
  });

  it("are at most 500, and more are told", async () => {
    for (let i = 0; i < 505; i += 1) write(`many/${i}.yaml`);
    const path = join(folder, "aliquot.yaml");
    const text = "version: 1\nenvoy: { domains: [many/*.yaml] }\n";
    const domainFiles = await readDomainFiles(path, domainPatterns({ path, text }));
    const { problems } = loadConfig({
      file: { path, text },
      domainFiles,
      env: {},
      flags: {},
      hostname: "h",
    });
    expect(problems?.map(formatProblem)).toEqual([
      `${path}:2:19: envoy.domains: finds more than 500 files; got a list`,
    ]);
  });

  it("are named by a list of texts, and by nothing else", () => {
    const patterns = (text: string): readonly string[] => domainPatterns({ path: "a.yaml", text });
    expect(patterns("envoy: { domains: [a, '', 7, [b]] }")).toEqual(["a"]);
    expect(patterns("envoy: { domains: a }")).toEqual([]);
    expect(patterns("envoy: [")).toEqual([]);
  });
});
