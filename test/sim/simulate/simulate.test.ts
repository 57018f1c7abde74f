/** The user's verb, from a configuration and a scenario to a verdict per limit. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { aliquot, type Ran } from "../../cli/listening-io.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const REDIS = join(ROOT, "examples", "redis.yaml");

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "aliquot-simulate-"));
});

afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const CONFIG = `version: 1
fleet: f
redis: { url: "redis://redis:6379" }
limits:
  - { name: api, rate: 100/s, burst: 100, overrides: [{ key: vip, rate: 500/s, burst: 500 }] }
  - { name: always, rate: 50/s, fallback: open }
  - { name: careful, rate: 50/s, fallback: closed }
  - { name: trial, rate: 50/s, shadow: true }
`;

function run(scenario: string, ...flags: string[]): Promise<Ran> {
  const config = file("config.yaml", CONFIG);
  return aliquot(["simulate", file("scenario.yaml", scenario), "--config", config, ...flags]);
}

/** The lines of one limit. */
function partOf(stdout: string, limit: string): string {
  return stdout.split("\n\n").find((part) => part.startsWith(limit)) ?? "";
}

const EVEN = "duration: 10s\npods: 5\nload: [{ limit: api, rate: 300/s }]\n";

describe("the examples", () => {
  const names = readdirSync(join(ROOT, "examples")).filter((name) => /^simulate-/.test(name));

  test("there are three", () => expect(names).toHaveLength(3));

  test.each(names)(
    "%s holds against redis.yaml",
    async (name) => {
      const ran = await aliquot(["simulate", join(ROOT, "examples", name), "--config", REDIS]);
      expect(ran.stderr).toBe("");
      expect(ran.stdout).toMatch(/ {2}verdict {3}holds/);
      expect(ran.code).toBe(0);
    },
    90_000,
  );
});

describe("the verdict of a limit", () => {
  test("tells mode, load, bound, excess, use, cost and outage", async () => {
    const { stdout, code } = await run(EVEN);
    expect(code).toBe(0);
    const part = partOf(stdout, "api: 100/s, burst 100");
    expect(part).toMatch(/mode +hybrid/);
    expect(part).toMatch(/admitted +1\s?\d{3} tokens, (99\.\d|100) % of what ideal buckets admit/);
    // 5 pods: 2 each while unknown, one interval of flow, one interval and a round trip of
    // staleness.
    expect(part).toMatch(/at most 30\.4 tokens/);
    expect(part).toMatch(/in a second run, away from 4 s to 7.50 s: admits (8[5-9]|90|9[0-2])/);
    expect(part).toMatch(/verdict +holds/);
    expect(stdout).toMatch(/store +[\d.]+ calls\/s, 0\.\d+ per admitted token/);
  });

  test("the same seed gives the same text, another seed another one", async () => {
    const once = await run(EVEN);
    expect(await run(EVEN)).toEqual(once);
    expect((await run(EVEN, "--seed", "2")).stdout).not.toBe(once.stdout);
    expect((await run(EVEN, "--seed", "2")).stdout).toContain("seed 2");
  });

  test("a key with an override is a limit of its own", async () => {
    const { stdout } = await run(
      "duration: 5s\npods: 2\nload:\n  - { limit: api, rate: 300/s, key: vip }\n" +
        "  - { limit: api, rate: 300/s, key: other }\n",
    );
    expect(partOf(stdout, "api, vip: 500/s, burst 500")).toMatch(/100 % of what ideal/);
    expect(partOf(stdout, "api: 100/s")).toMatch(/verdict +holds/);
  });

  test("what each fallback does in the outage of the scenario is measured", async () => {
    const { stdout, code } = await run(
      "duration: 20s\npods: 4\nload:\n" +
        "  - { limit: always, rate: 200/s }\n  - { limit: careful, rate: 200/s }\n" +
        "  - { limit: api, rate: 200/s }\nfaults: [8s store-down for=8s how=refuse]\n",
    );
    expect(partOf(stdout, "always")).toMatch(/admits (19|20|21)\d\/s, ideal buckets (49|50|51)/);
    expect(partOf(stdout, "always")).toContain("as an open limit can");
    expect(partOf(stdout, "careful")).toMatch(/every check is answered 503\s+away .* admits 0\/s/);
    expect(partOf(stdout, "api")).toMatch(/at most 90\.0\/s|at most 90\/s/);
    expect(code).toBe(0);
  });

  test("a shadow limit is simulated as if it were enforced", async () => {
    const { stdout } = await run("duration: 5s\npods: 2\nload: [{ limit: trial, rate: 500/s }]\n");
    expect(partOf(stdout, "trial")).toMatch(/admitted +(29\d|30\d) tokens/);
  });

  test.each([
    ["auto", "exact: every check is decided in the store", "1 token "],
    ["leased", "leased: pods spend what the store has handed out beforehand", "0 tokens"],
    ["hybrid", "hybrid: pods decide and compare numbers every", "note +the bound is large"],
  ])("a limit too small for the fleet, mode %s", async (mode, says, bound) => {
    const small = `rate: 60/m, burst: 5, mode: ${mode}`;
    const config = file("small.yaml", CONFIG.replace("rate: 100/s, burst: 100", small));
    const path = file("s.yaml", EVEN.replace("300/s", "3/s"));
    const { stdout, code } = await aliquot(["simulate", path, "--config", config]);
    expect(stdout).toContain(says);
    expect(stdout).toMatch(new RegExp(bound));
    expect(code).toBe(0);
  });

  test("costs that are large for the burst make auto decide in the store", async () => {
    const { stdout, code } = await run(EVEN.replace("rate: 300/s", "rate: 300/s, cost: 30"));
    expect(partOf(stdout, "api")).toMatch(/exact: .*\s+.*costs above an eighth/);
    expect(code).toBe(0);
  });

  test("without Redis in the configuration it says what that would mean", async () => {
    const config = file("alone.yaml", CONFIG.replace(/redis:.*\n/, ""));
    const path = file("s.yaml", EVEN);
    const { stdout } = await aliquot(["simulate", path, "--config", config]);
    expect(stdout).toContain("names no Redis");
  });
});

test("the fleet may follow an autoscaler", async () => {
  const { stdout, code } = await run(
    "duration: 20s\n" +
      "autoscaler: { min: 2, max: 6, requests_per_pod: 50, period: 2s, startup: 1s }\n" +
      "load: [{ limit: api, rate: 300/s }]\n",
  );
  expect(stdout).toMatch(/pods +2 to 6/);
  expect(code).toBe(0);
});

describe("a recorded trace", () => {
  test("is found beside the scenario and replayed", async () => {
    const rows = Array.from({ length: 200 }, (_, i) => `${(i * 0.01).toFixed(2)},any,api,k,2`);
    file("trace.csv", `time,pod,limit,key,cost\n${rows.join("\n")}\n`);
    const { stdout, code } = await run("duration: 2s\npods: 2\nload: [{ trace: trace.csv }]\n");
    expect(stdout).toMatch(/asked +400 tokens under one key/);
    expect(code).toBe(0);
  });

  test("with a wrong line is refused, naming the line", async () => {
    file("bad.csv", "time,pod,limit,key,cost\n0,0,api,k,1\n1,0,nope,k,1\n");
    const { stderr, code } = await run("duration: 2s\npods: 2\nload: [{ trace: bad.csv }]\n");
    expect(stderr).toContain('bad.csv:3: there is no limit "nope"');
    expect(code).toBe(2);
  });

  test("that is not there is refused", async () => {
    const { stderr, code } = await run("duration: 2s\npods: 2\nload: [{ trace: gone.csv }]\n");
    expect(stderr).toContain("gone.csv: cannot be read");
    expect(code).toBe(2);
  });
});

describe("what makes no sense is refused with exit code 2", () => {
  test.each<[string, string[], string]>([
    ["no scenario", [], "needs SCENARIO"],
    ["no configuration", ["s.yaml"], "needs a configuration: --config FILE"],
    ["a scenario that is not there", ["gone.yaml", "--config", REDIS], "gone.yaml: does not exist"],
    ["a configuration that is not there", ["s.yaml", "--config", "no.yaml"], "no.yaml: does not"],
    ["a seed in words", ["s.yaml", "--config", REDIS, "--seed", "one"], "--seed must be a whole"],
  ])("%s", async (_, args, says) => {
    const { stderr, code } = await aliquot(["simulate", ...args]);
    expect(stderr).toContain(says);
    expect(code).toBe(2);
  });

  test("a scenario with problems: all of them, with their lines", async () => {
    const { stderr, stdout, code } = await run("duration: 5s\npods: 2\nload: [{ limit: apj }]\n");
    expect(stderr).toContain("scenario.yaml:3:");
    expect(stderr.trimEnd().split("\n")).toHaveLength(2);
    expect(stdout).toBe("");
    expect(code).toBe(2);
  });
});

test("the report is written where --out says", async () => {
  const out = join(folder, "report");
  const { stdout } = await run(EVEN, "--out", out);
  expect(readdirSync(out).sort()).toEqual(["report.html", "results.csv", "results.json"]);
  expect(readFileSync(join(out, "report.html"), "utf8")).toContain("Admitted against the limit");
  expect(stdout).toContain(join(out, "report.html"));
});

test("the built command does the same", () => {
  const build = inject("sidecarBuild");
  if ("trouble" in build) throw new Error(build.trouble);
  const args = [build.main, "simulate", file("s.yaml", EVEN), "--config", file("c.yaml", CONFIG)];
  const ran = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(ran.stderr).toBe("");
  expect(ran.stdout).toMatch(/verdict +holds/);
  expect(ran.status).toBe(0);
});
