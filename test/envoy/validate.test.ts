import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { aliquot } from "../cli/listening-io.ts";

let folder: string;
let config: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "aliquot-validate-"));
  config = join(folder, "aliquot.yaml");
  writeFileSync(config, "version: 1\nenvoy: { domains: [./*.rules] }\n");
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (text: string): void => writeFileSync(join(folder, "a.rules"), text);

describe("aliquot validate", () => {
  it("prints the limits that rule files put in force, without any other limit", async () => {
    write(`domain: shop
descriptors:
  - key: plan
    value: free
    descriptors:
      - { key: user, rate_limit: { unit: minute, requests_per_unit: 90 } }
  - { key: all, shadow_mode: true, rate_limit: { unit: week, requests_per_unit: 7 } }
`);
    const { code, stdout, stderr } = await aliquot(["validate", config]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("3 limits");
    expect(stdout).toMatch(/envoy\/shop\/plan=free\/user +90\/m +90 /);
    expect(stdout).toMatch(/envoy\/shop\/all +1\/d +7 .* shadow/);
    expect(stdout).toMatch(/envoy\/shop\/@override +caller's +caller's/);
  });

  it("names file and line of what is wrong in a rule file", async () => {
    write("domain: shop\ndescriptors:\n  - { key: a, rate_limits: {} }\n");
    const { code, stderr } = await aliquot(["validate", config]);
    expect(code).toBe(2);
    expect(stderr).toContain(
      "a.rules:3:15: descriptors[0].rate_limits: unknown field; did you mean rate_limit?",
    );
  });

  it("prints a whole configuration that is one again", async () => {
    write("domain: shop\n");
    const printed = await aliquot(["validate", "--effective", config]);
    expect(printed.code).toBe(0);
    writeFileSync(config, printed.stdout);
    const again = await aliquot(["validate", "--effective", config]);
    expect(again).toEqual(printed);
  });
});
