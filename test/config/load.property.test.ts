/** Laws of loading: whatever the text, an answer; whatever the cut, no half of a file in force. */
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { loadConfig } from "../../src/config/load.ts";
import { formatProblem } from "../../src/config/problem.ts";
import { sections } from "../../src/config/schema.ts";
import { SETTINGS } from "../../src/config/settings.ts";

const examples = ["examples/quickstart.yaml", "examples/redis.yaml"].map((path) =>
  readFileSync(path, "utf8"),
);

function answer(text: string, outside: { env?: object; flags?: object } = {}) {
  const loaded = loadConfig({
    file: { path: "a.yaml", text },
    env: { ...outside.env },
    flags: { ...outside.flags },
    hostname: "h",
  });
  if (loaded.config !== undefined) {
    expect(loaded.problems).toBeUndefined();
    expect(loaded.config.limits.length).toBeGreaterThan(0);
    return loaded.config;
  }
  expect(loaded.problems.length).toBeGreaterThan(0);
  for (const problem of loaded.problems) {
    expect(formatProblem(problem)).not.toMatch(/\n|undefined|\[object/);
  }
  return undefined;
}

const names = fc.constantFrom(
  ...Object.keys(sections),
  ...["http", "tcp", "socket", "url", "cluster", "name", "rate", "burst", "mode", "overrides"],
  ...["key", "policy", "margin", "max_pods", "interval", "__proto__", "constructor", "toString"],
);
const scalars = fc.oneof(
  fc.constantFrom("redis", "10/s", "100ms", "off", "a", "", "redis://h", "127.0.0.1:0", "0660"),
  fc.constantFrom(null, true, 0, 1, -1, 1.5, 1e300, Number.NaN, Number.POSITIVE_INFINITY),
  fc.string(),
);
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { depthSize: "small" },
    scalars,
    fc.array(tie("tree"), { maxLength: 4 }),
    fc.array(fc.tuple(names, tie("tree")), { maxLength: 6 }).map((pairs) => new Map(pairs)),
  ),
}));

describe("loading", () => {
  it("answers any text with a configuration or problems, and never throws", () => {
    const yamlish = fc.string({
      unit: fc.constantFrom(
        ..."\n\t :-[]{}&*!|>'\"#%@`,?a1/s\u0000\u2028".split(""),
        "limits",
        "rate",
      ),
      maxLength: 200,
    });
    fc.assert(
      fc.property(fc.oneof(fc.string({ maxLength: 200, unit: "binary" }), yamlish), (text) => {
        answer(text);
      }),
      { numRuns: 1_000 },
    );
  });

  it("answers any tree of our own names with a configuration or problems", () => {
    const file = fc.array(fc.tuple(names, tree), { maxLength: 8 });
    fc.assert(
      fc.property(file, (pairs) => {
        answer(stringify(new Map<string, unknown>([["version", 1], ...pairs])));
      }),
      { numRuns: 1_000 },
    );
  });

  it("answers an example with a few characters changed", () => {
    const change = fc.tuple(fc.nat(), fc.nat(4), fc.string({ maxLength: 4 }));
    fc.assert(
      fc.property(
        fc.constantFrom(...examples),
        fc.array(change, { maxLength: 3 }),
        (text, changes) => {
          let changed = text;
          for (const [at, cut, insert] of changes) {
            const start = at % (changed.length + 1);
            changed = changed.slice(0, start) + insert + changed.slice(start + cut);
          }
          answer(changed);
        },
      ),
      { numRuns: 500 },
    );
  });

  it("answers any settings from outside", () => {
    const setting = fc.constantFrom(...SETTINGS.map((entry) => entry.flag), "pod-id");
    fc.assert(
      fc.property(fc.dictionary(setting, fc.string()), (flags) => {
        answer(examples[0] ?? "", { flags });
      }),
    );
  });

  it("answers files that nest or multiply without end", () => {
    answer("[".repeat(100_000));
    answer("a: ".repeat(50_000));
    const bomb = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"];
    for (let i = 1; i < 12; i += 1) {
      const items = Array.from({ length: 10 }, () => `*a${i - 1}`).join(", ");
      bomb.push(`a${i}: &a${i} [${items}]`);
    }
    expect(answer(bomb.join("\n"))).toBeUndefined();
    expect(answer(`# ${"x".repeat(1_048_576)}`)).toBeUndefined();
  });
});
