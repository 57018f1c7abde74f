import { describe, expect, it } from "vitest";
import { filesProblems, rulesOf, rulesOfFiles } from "./rules.ts";

const limited = (unit: string, count: string): string =>
  `domain: d\ndescriptors:\n  - key: k\n    rate_limit: { unit: ${unit}, ${count} }\n`;

describe("a file of envoyproxy/ratelimit", () => {
  it("becomes a limit per counted rule, named by its path, and one for overrides", () => {
    const { limits, domains } = rulesOf(`
domain: shop
descriptors:
  - key: plan
    value: free
    rate_limit: { unit: minute, requests_per_unit: 60 }
    descriptors:
      - key: user
        rate_limit: { unit: second, requests_per_unit: 2 }
  - key: plan
    value: paid
    descriptors:
      - key: user
        rate_limit: { unlimited: true }
      - key: path
        value: /api/*
        rate_limit: { unit: hour, requests_per_unit: 0 }
`);
    expect(limits.map(({ name, rate, burst }) => ({ name, rate, burst }))).toEqual([
      { name: "envoy/shop/plan=free", rate: 1, burst: 60 },
      { name: "envoy/shop/plan=free/user", rate: 2, burst: 2 },
      { name: "envoy/shop/@override", rate: 1, burst: 1 },
    ]);
    expect(domains.map(({ name }) => name)).toEqual(["shop"]);
  });

  it.each([
    ["second", 1],
    ["Minute", 60],
    ["HOUR", 3_600],
    ["day", 86_400],
    ["week", 604_800],
    ["month", 2_592_000],
    ["YEAR", 31_536_000],
  ])("knows the unit %s, of %d seconds", (unit, seconds) => {
    const [limit] = rulesOf(limited(unit, "requests_per_unit: 7")).limits;
    expect(limit?.burst).toBe(7);
    expect((limit?.rate ?? 0) * seconds).toBeCloseTo(7, 9);
  });

  it("reads values as they are written, whatever YAML takes them for", () => {
    const { limits } = rulesOf(`
domain: d
descriptors:
  - { key: code, value: 1.0, rate_limit: { unit: second, requests_per_unit: 1_000 } }
  - { key: code, value: yes, rate_limit: { unit: second, requests_per_unit: 2 } }
  - { key: code, value: "404", rate_limit: { unit: second, requests_per_unit: 3 } }
  - { key: code, value: 0x10, rate_limit: { unit: second, requests_per_unit: 4 } }
`);
    expect(limits.map(({ name, burst }) => [name, burst]).slice(0, 4)).toEqual([
      ["envoy/d/code=1.0", 1_000],
      ["envoy/d/code=yes", 2],
      ["envoy/d/code=404", 3],
      ["envoy/d/code=0x10", 4],
    ]);
  });

  it("may repeat itself with anchors and merge keys", () => {
    const { limits } = rulesOf(`
domain: d
descriptors:
  - key: a
    rate_limit: &slow { unit: minute, requests_per_unit: 5 }
  - key: b
    rate_limit: { <<: *slow, requests_per_unit: 6 }
  - key: c
    rate_limit: *slow
`);
    expect(limits.slice(0, 3).map(({ burst }) => burst)).toEqual([5, 6, 5]);
  });

  it("takes shadow_mode to its limits, and the refinements of a block aliquot", () => {
    const [shadow, refined] = rulesOf(
      `
domain: d
descriptors:
  - { key: a, shadow_mode: true, rate_limit: { unit: second, requests_per_unit: 1 } }
  - key: b
    rate_limit: { unit: minute, requests_per_unit: 60 }
    aliquot: { burst: 7, fallback: { policy: closed, margin: 0.5 }, on_deny: debit }
`,
      { extra: "fallback: { max_pods: 3 }" },
    ).limits;
    expect(shadow?.shadow).toBe(true);
    expect(shadow?.onDeny).toBe("keep");
    expect(refined).toMatchObject({
      rate: 1,
      burst: 7,
      shadow: false,
      onDeny: "debit",
      mode: "auto",
      fallback: { policy: "closed", margin: 0.5, maxPods: 3 },
    });
  });

  it("has one on_deny for all that name none, when the configuration gives one", () => {
    const text = `${limited("second", "requests_per_unit: 1")}
  - { key: b, rate_limit: { unit: day, requests_per_unit: 1 }, aliquot: { on_deny: keep } }`;
    const { limits } = rulesOf(text, { envoy: ", on_deny: debit" });
    expect(limits.map(({ onDeny }) => onDeny)).toEqual(["debit", "keep", "debit"]);
  });

  it("has empty fields as if they were not there", () => {
    const text = 'domain: d\ndescriptors:\n  - key: k\n    value: ""\n    descriptors:\n';
    const [node] = rulesOf(text).domains[0]?.nodes ?? [];
    expect(node).toMatchObject({ key: "k", value: undefined, rule: undefined, children: [] });
    expect(rulesOf("domain: d\n").limits).toHaveLength(1);
  });

  it("keeps the texts of its hash: any pod with the same files has the same", () => {
    const text = limited("second", "requests_per_unit: 1");
    expect(rulesOf(text).textHash).toBe(rulesOf(text).textHash);
    expect(rulesOf(text).textHash).not.toBe(rulesOf(`${text}# x\n`).textHash);
  });
});

describe("names of limits from rules", () => {
  it("O24 differ where domains, keys and values differ", () => {
    const names = [
      ["x", "y_z", ""],
      ["x_y", "z", ""],
      ["x", "y", "z"],
      ["x", "y=z", ""],
      ["x", "y/z", ""],
      ["x/y", "z", ""],
      ["x", "y", "*"],
      ["x", "y", "%2A"],
      ["x", "y%3Dz", ""],
    ].map(([domain, key, value]) => {
      const descriptor = JSON.stringify({
        key,
        value,
        rate_limit: { unit: "day", requests_per_unit: 1 },
      });
      return rulesOf(`domain: ${domain}\ndescriptors: [${descriptor}]`).limits[0]?.name;
    });
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^envoy\/[A-Za-z0-9_.%*=/-]+$/);
  });

  it("stay short, and apart, for values of any length", () => {
    const rule = (tail: string): string =>
      `domain: d\ndescriptors:\n  - key: ${"k".repeat(500)}${tail}\n` +
      "    rate_limit: { unit: day, requests_per_unit: 1 }\n";
    const [a, b] = ["a", "b"].map((tail) => rulesOf(rule(tail)).limits[0]?.name ?? "");
    expect(a).not.toBe(b);
    expect(a?.length).toBeLessThanOrEqual(200);
  });
});

describe("several files", () => {
  const file = (name: string, domain: string) => ({ name, text: `domain: ${domain}\n` });

  it("are one domain each", () => {
    const { domains } = rulesOfFiles([file("a", "one"), file("b", "two")]);
    expect(domains.map(({ name }) => name)).toEqual(["one", "two"]);
  });

  it("are refused when two name one domain", () => {
    expect(filesProblems([file("a.yaml", "one"), file("b.yaml", "one")])).toEqual([
      'b.yaml:1:9: domain: is the domain of a.yaml too; a domain has one file; got "one"',
    ]);
  });

  it("tell their problems together, each with its own file", () => {
    expect(filesProblems([file("a.yaml", "''"), { name: "b.yaml", text: "domian: x\n" }])).toEqual([
      "a.yaml:1:1: domain: is missing; every file names its domain",
      "b.yaml:1:1: domian: unknown field; did you mean domain?",
      "b.yaml:1:1: domain: is missing; every file names its domain",
    ]);
  });

  it("are told about when a pattern finds none", () => {
    expect(filesProblems([])).toEqual([
      'a.yaml:2:20: envoy.domains[0]: finds no file; got "rules/*.yaml"',
    ]);
  });
});
