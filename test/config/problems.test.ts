import { describe, expect, it } from "vitest";
import { minimal, problemsOf } from "./loading.ts";
import { REFUSED_LIMITS } from "./refused-limits.ts";
import { REFUSED_SECTIONS } from "./refused-sections.ts";

describe("a configuration that is refused", () => {
  it.each([...REFUSED_LIMITS, ...REFUSED_SECTIONS])(
    "tells place, field, value and what would be accepted: %s",
    (_, text, problems) => {
      expect(problemsOf(text)).toEqual(problems);
    },
  );

  it("tells every problem at once, in the order of the file", () => {
    const text = [
      "version: 1",
      "fleet: Shop",
      "keys_max: 0",
      "limits:",
      "  - { name: a, rate: ten, mode: lease }",
      "  - { name: a, rate: 1/s, burst: 4503599627370496 }",
      "decison_timeout: 5ms",
    ].join("\n");
    const places = problemsOf(text).map((line) => line.split(": ").slice(0, 2).join(" "));
    expect(places).toEqual([
      "a.yaml:2:8 fleet",
      "a.yaml:3:11 keys_max",
      "a.yaml:5:22 limits[0].rate",
      "a.yaml:5:33 limits[0].mode",
      "a.yaml:6:13 limits[1].name",
      "a.yaml:6:34 limits[1].burst",
      "a.yaml:7:1 decison_timeout",
    ]);
  });

  it("tells at most 200 problems and how many more there are", () => {
    const limits = Array.from({ length: 300 }, (_, i) => `  - { name: l${i}, rate: x }`);
    const problems = problemsOf(["version: 1", "limits:", ...limits].join("\n"));
    expect(problems).toHaveLength(201);
    expect(problems.at(-1)).toBe("a.yaml: has 100 more problems");
  });

  it("names the flag or the variable in place of a line", () => {
    const flags = { ops: "zzz", "pod-id": "a b" };
    const env = { ALIQUOT_KEYS_MAX: "many", ALIQUOT_LISTEN_ALLOW_REMOTE: "yes" };
    expect(problemsOf(minimal(), { flags, env })).toEqual([
      "flag --ops: listen.ops: " + 'must be host:port, such as 127.0.0.1:8790, or off; got "zzz"',
      "environment variable ALIQUOT_LISTEN_ALLOW_REMOTE: listen.allow_remote: " +
        'must be true or false; got "yes"',
      "environment variable ALIQUOT_KEYS_MAX: keys_max: " +
        'must be a whole number from 1 to 10000000; got "many"',
      "flag --pod-id: pod id: " +
        `must be 1 to 128 characters of A-Z, a-z, 0-9, '.', '_', ':' and '-'; got "a b"`,
    ]);
  });

  it("keeps control characters of names and values out of the terminal", () => {
    const [problem = ""] = problemsOf(minimal('"a\\nb\\e[31m": 1'));
    expect(problem).toMatch(/^a\.yaml:3:1: \["a\\nb\\u001b\[31m"\]: unknown field/);
  });
});
