import { describe, expect, it } from "vitest";
import { filesProblems, ruleProblems, rulesOf, rulesOfFiles } from "./rules.ts";

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

describe("a file with a fault is refused with its line", () => {
  it.each<[string, string, readonly string[]]>([
    [
      "a misspelt field",
      "domain: d\ndescriptors:\n  - key: k\n    rate_limt: { unit: second }\n",
      ["r.yaml:4:5: descriptors[0].rate_limt: unknown field; did you mean rate_limit?"],
    ],
    [
      "a field in the wrong place, which would be ignored there",
      "domain: d\ndescriptors:\n  - key: k\n    requests_per_unit: 5\n",
      ["r.yaml:4:5: descriptors[0].requests_per_unit: unknown field; it belongs in a rate_limit"],
    ],
    [
      "a shadow_mode that would not shadow",
      `${limited("second", "requests_per_unit: 1, shadow_mode: true")}`,
      [
        "r.yaml:4:55: descriptors[0].rate_limit.shadow_mode: unknown field; " +
          "it belongs in a descriptor, beside its key",
      ],
    ],
    [
      "a unit that is none",
      limited("fortnight", "requests_per_unit: 1"),
      [
        "r.yaml:4:25: descriptors[0].rate_limit.unit: must be second, minute, hour, day, week, " +
          'month or year; got "fortnight"',
      ],
    ],
    [
      "a unit that is nearly one",
      limited("minutes", "requests_per_unit: 1"),
      [
        "r.yaml:4:25: descriptors[0].rate_limit.unit: must be second, minute, hour, day, week, " +
          'month or year; did you mean minute?; got "minutes"',
      ],
    ],
    [
      "a unit in an unlimited rule",
      limited("second", "unlimited: true"),
      [
        "r.yaml:4:25: descriptors[0].rate_limit.unit: must be left out of an unlimited rule; " +
          'got "second"',
      ],
    ],
    [
      "a rule without a number",
      "domain: d\ndescriptors:\n  - key: k\n    rate_limit: { unit: second }\n",
      [
        "r.yaml:4:17: descriptors[0].rate_limit.requests_per_unit: is missing; " +
          "must be a whole number from 0 (which blocks) to 4294967295",
      ],
    ],
    [
      "a number that no uint32 holds",
      limited("second", "requests_per_unit: 4294967296"),
      [
        "r.yaml:4:52: descriptors[0].rate_limit.requests_per_unit: " +
          'must be a whole number from 0 (which blocks) to 4294967295; got "4294967296"',
      ],
    ],
    [
      "two rules for one value",
      "domain: d\ndescriptors:\n  - { key: k, value: v }\n  - { key: k }\n  - { key: k, value: v }\n",
      ["r.yaml:5:5: descriptors[2]: is a duplicate of line 3: k = v; each must be unique"],
    ],
    [
      "a field that comes twice",
      "domain: d\ndomain: e\n",
      ['r.yaml:2:1: duplicate field "domain"; each may be given once'],
    ],
    [
      "a descriptor without a key",
      "domain: d\ndescriptors:\n  - value: v\n",
      ["r.yaml:3:5: descriptors[0].key: is missing; a descriptor has a key"],
    ],
    [
      "a rule that replaces itself, and one that replaces nothing",
      limited("second", "requests_per_unit: 1, name: a, replaces: [{ name: a }, { name: '' }]"),
      [
        "r.yaml:4:75: descriptors[0].rate_limit.replaces[0].name: " +
          'is this rule itself; name another; got "a"',
        "r.yaml:4:88: descriptors[0].rate_limit.replaces[1].name: " +
          "is missing; name the rule to replace",
      ],
    ],
    [
      "share_threshold where there is nothing to share",
      "domain: d\ndescriptors:\n  - { key: k, value: v, share_threshold: true }\n",
      [
        "r.yaml:3:25: descriptors[0].share_threshold: " +
          "needs a * in value: it counts all values of a pattern together",
      ],
    ],
    [
      "a limit that cannot be counted",
      limited("year", "requests_per_unit: 4294967295"),
      [
        "r.yaml:4:17: descriptors[0].rate_limit: a burst of 4294967295 with 4294967295 tokens " +
          "per 31536000000000 us cannot be counted exactly; choose a smaller burst or a " +
          "shorter span",
      ],
    ],
    [
      "a block aliquot with faults",
      `${limited("second", "requests_per_unit: 1")}    aliquot: { brust: 1, mode: fast }\n`,
      [
        "r.yaml:5:32: descriptors[0].aliquot.mode: " +
          'must be auto, hybrid, leased or exact; got "fast"',
        "r.yaml:5:16: descriptors[0].aliquot.brust: unknown field; did you mean burst?",
      ],
    ],
    [
      "a block aliquot with nothing to refine",
      "domain: d\ndescriptors:\n  - { key: k, aliquot: { burst: 1 } }\n",
      [
        "r.yaml:3:15: descriptors[0].aliquot: " +
          "refines a rate_limit with requests_per_unit above 0, and there is none",
      ],
    ],
    [
      "a switch that is none",
      "domain: d\ndescriptors:\n  - { key: k, shadow_mode: maybe }\n",
      ['r.yaml:3:28: descriptors[0].shadow_mode: must be true or false; got "maybe"'],
    ],
    ["no map", "- domain: d\n", ["r.yaml:1:1: must be a map with domain and descriptors"]],
    ["nothing", "", ["r.yaml:1:1: must be a map with domain and descriptors"]],
    [
      "descriptors that are no list",
      "domain: d\ndescriptors: { key: k }\n",
      ["r.yaml:2:14: descriptors: must be a list of maps"],
    ],
    [
      "a list of something else",
      "domain: d\ndescriptors: [k]\n",
      ['r.yaml:2:15: descriptors[0]: must be a map; got "k"'],
    ],
  ])("%s", (_, text, problems) => {
    expect(ruleProblems(text)).toEqual(problems);
  });

  it("that breaks YAML", () => {
    expect(ruleProblems("domain: [d\n")[0]).toMatch(/^r\.yaml:2:1: is not valid YAML: /);
  });

  it("whose aliases multiply, in bounded time", () => {
    const lines = ["domain: d", "x0: &x0 [a, a, a, a, a, a, a, a, a, a]"];
    for (let i = 1; i < 9; i += 1) lines.push(`x${i}: &x${i} [${`*x${i - 1}, `.repeat(10)}]`);
    expect(ruleProblems(lines.join("\n"))[0]).toContain("must hold at most 200000 values");
  });

  it("that is nested without end", () => {
    const deep = `descriptors: [{ key: k, ${"descriptors: [{ key: k, ".repeat(300)}`;
    const text = `{ domain: d, ${deep}${"}]".repeat(301)} }`;
    expect(ruleProblems(text)[0]).toMatch(/^r\.yaml:1:[0-9]+: is nested too deeply$/);
  });
});
