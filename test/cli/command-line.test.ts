import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { VERBS } from "../../src/cli/run.ts";
import { configJsonSchema } from "../../src/config/json-schema.ts";
import { openApiDocument } from "../../src/server/openapi.ts";
import { aliquot } from "./listening-io.ts";

describe("the command line", () => {
  it.each([["--help"], ["-h"], ["help"]])("lists all verbs for %s", async (arg) => {
    const { code, stdout } = await aliquot([arg]);
    expect(code).toBe(0);
    for (const { name } of VERBS) expect(stdout).toMatch(new RegExp(`^  ${name} `, "m"));
  });

  it("has every verb of the contract", () => {
    expect(VERBS.map(({ name }) => name).sort()).toEqual([
      "check",
      "health",
      "openapi",
      "schema",
      "serve",
      "simulate",
      "top",
      "validate",
      "version",
      "wait",
    ]);
  });

  it.each(VERBS.map(({ name }) => name))("explains %s with flags and examples", async (name) => {
    const asked = await aliquot([name, "--help"]);
    expect(asked.code).toBe(0);
    expect(asked.stdout).toMatch(new RegExp(`^aliquot ${name}`));
    expect(asked.stdout).toMatch(/Flags:\n[\s\S]*--help[\s\S]*Examples:\n {2}\S/);
    expect(await aliquot(["help", name])).toEqual(asked);
  });

  it.each([
    [["validat", "x"], 'aliquot: unknown verb "validat"; did you mean validate?'],
    [["zzzzzz"], 'aliquot: unknown verb "zzzzzz"\n'],
    [["serve", "--reds-url", "x"], "unknown flag --reds-url; did you mean --redis-url?"],
    [["--reds-url=x"], "aliquot serve: unknown flag --reds-url; did you mean --redis-url?"],
    [["serve", "-x"], "unknown flag -x"],
    [["serve", "extra"], 'takes no operands, and "extra" is one too many'],
    [["serve", "--config"], "needs a value: --config FILE"],
    [["serve", "--config", "--ops"], "needs a value: --config FILE"],
    [["validate"], "needs FILE..."],
    [["check", "a"], "needs LIMIT KEY"],
    [["check", "a", "b", "--cost", "-1"], "--cost must be a whole number from 0 to 1000000000"],
    [["check", "a", "b", "--cost", "1000000001"], "--cost must be a whole number"],
    [["check", "a", "b", "--cost=1.5"], "--cost must be a whole number"],
    [["check", "a", "b", "--listen-http-tcp", "zzz"], "--listen-http-tcp must be host:port"],
    [["wait", "--timeout", "5"], "--timeout must be a duration such as"],
    [["health", "--probe", "x"], "--probe must be one of livez, readyz, startupz"],
    [["health", "--ops", "off"], "the ops listener is off"],
    [["schema", "--format", "xml"], "--format must be json or markdown"],
  ])("refuses %j with exit code 2 and a sentence", async (args, sentence) => {
    const { code, stdout, stderr } = await aliquot(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(sentence);
    expect(stderr).toMatch(/Try aliquot/);
  });

  it("prints its version and that of Node.js", async () => {
    const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
    const expected = {
      code: 0,
      stdout: `aliquot ${version} (node ${process.version})\n`,
      stderr: "",
    };
    expect(await aliquot(["version"])).toEqual(expected);
    expect(await aliquot(["--version"])).toEqual(expected);
  });

  it("prints the JSON Schema and the OpenAPI document", async () => {
    const schema = await aliquot(["schema"]);
    expect(JSON.parse(schema.stdout)).toEqual(configJsonSchema());
    const openapi = await aliquot(["openapi"]);
    expect(JSON.parse(openapi.stdout)).toEqual(JSON.parse(JSON.stringify(openApiDocument())));
  });
});

describe("aliquot validate", () => {
  it("prints the limits that a file puts in force", async () => {
    const { code, stdout, stderr } = await aliquot(["validate", "examples/redis.yaml"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.split("\n")).toEqual([
      "examples/redis.yaml: valid; fleet checkout, redis, 4 limits",
      "  LIMIT              RATE    BURST  MODE  INTERVAL  FALLBACK",
      "  api-per-tenant     100/s   200    auto  100ms     local, 0.8 for up to 30 pods",
      '    key "tenant-42"  1000/s  2000   auto  100ms',
      '    key "tenant-77"  20/s    40     auto  100ms',
      "  api-global         5000/s  5000   auto  100ms     open",
      "  password-reset     1/m     5      auto  100ms     closed",
      "  export-per-tenant  10/m    10     auto  100ms     local, 0.5 for up to 30 pods",
      "",
    ]);
  });

  it("checks every file and exits with 2 when one has problems", async () => {
    const { code, stdout, stderr } = await aliquot([
      "validate",
      "package.json",
      "examples/none.yaml",
      "examples/quickstart.yaml",
    ]);
    expect(code).toBe(2);
    expect(stdout).toMatch(/^examples\/quickstart\.yaml: valid/);
    expect(stderr).toMatch(/^package\.json:1:1: limits: is missing/);
    expect(stderr).toMatch(/^examples\/none\.yaml: does not exist/m);
    expect(stderr).toMatch(/^[0-9]+ problems\n$/m);
  });

  it("takes flags and environment into account, as serve does", async () => {
    const env = { ALIQUOT_FLEET: "from-env" };
    const given = ["validate", "examples/quickstart.yaml", "--redis-url", "redis://h"];
    expect((await aliquot(given, env)).stdout).toContain("fleet from-env, redis");
    const wrong = await aliquot(["validate", "examples/quickstart.yaml", "--ops", "x"], env);
    expect([wrong.code, wrong.stderr]).toEqual([
      2,
      "flag --ops: listen.ops: " +
        'must be host:port, such as 127.0.0.1:8790, or off; got "x"\n1 problem\n',
    ]);
  });

  it("prints the whole configuration without secrets", async () => {
    const env = { ALIQUOT_REDIS_PASSWORD: "hush" };
    const { code, stdout } = await aliquot(["validate", "--effective", "examples/redis.yaml"], env);
    expect(code).toBe(0);
    expect(parse(stdout)).toMatchObject({ fleet: "checkout", keys_max: 100_000 });
    expect(stdout).not.toContain("hush");
  });
});
