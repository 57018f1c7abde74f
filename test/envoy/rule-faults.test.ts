import { describe, expect, it } from "vitest";
import { ruleProblems } from "./rules.ts";

const limited = (unit: string, count: string): string =>
  `domain: d\ndescriptors:\n  - key: k\n    rate_limit: { unit: ${unit}, ${count} }\n`;

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
      "domain: d\ndescriptors:\n" +
        "  - { key: k, value: v }\n  - { key: k }\n  - { key: k, value: v }\n",
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
