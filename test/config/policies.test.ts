import { describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { describeConfig } from "../../src/config/effective.ts";
import { configOf, problemsOf } from "./loading.ts";

/** A file with two limits and, from line 5 on, these lines. */
function withPolicies(...lines: readonly string[]): string {
  const limits = [
    "limits:",
    "  - { name: api-per-user, rate: 100/s }",
    "  - { name: all, rate: 9/s }",
  ];
  return ["version: 1", ...limits, ...lines].join("\n");
}

/** One policy on line 5 with one check of that key. */
function withKey(key: string, rest = ""): string {
  return withPolicies(`policies: [{ name: p,${rest} checks: [{ limit: all, key: ${key} }] }]`);
}

describe("policies", () => {
  it("are what the file says, in its order", () => {
    const { policies } = configOf(
      withPolicies(
        "forward: { trusted_hops: 1 }",
        "policies:",
        "  - name: users",
        '    match: { methods: [GET, POST], path: ["/users/:id", "/u/:id/**"] }',
        "    trusted_hops: 2",
        "    ipv6_prefix: 56",
        "    checks:",
        "      - { limit: api-per-user, key: header:X-API-Key }",
        "      - { limit: all, key: [path:id, query:q, cookie:s, client-address], cost: 3 }",
        "  - name: rest",
        "    checks: [{ limit: all, key: const:all }]",
      ),
    );
    expect(policies).toEqual([
      {
        name: "users",
        methods: new Set(["GET", "POST"]),
        paths: [
          [
            { kind: "text", bytes: "users" },
            { kind: "param", name: "id" },
          ],
          [{ kind: "text", bytes: "u" }, { kind: "param", name: "id" }, { kind: "rest" }],
        ],
        checks: [
          { limit: "api-per-user", key: [{ kind: "header", name: "x-api-key" }], cost: 1 },
          {
            limit: "all",
            key: [
              { kind: "path", name: "id" },
              { kind: "query", name: "q" },
              { kind: "cookie", name: "s" },
              { kind: "client-address" },
            ],
            cost: 3,
          },
        ],
        trustedHops: 2,
        ipv6Prefix: 56,
      },
      {
        name: "rest",
        methods: undefined,
        paths: undefined,
        checks: [{ limit: "all", key: [{ kind: "const", value: "all" }], cost: 1 }],
        trustedHops: 1,
        ipv6Prefix: 64,
      },
    ]);
  });

  it("are none when the file has none", () => {
    expect(configOf(withPolicies()).policies).toEqual([]);
  });

  it("read back from the effective configuration are the same", () => {
    const config = configOf(
      withPolicies(
        "forward: { trusted_hops: 2, ipv6_prefix: 48 }",
        "policies:",
        "  - name: a",
        "    match: { path: /caf\u00e9/*/:x/** }",
        "    checks: [{ limit: all, key: path:x }]",
        "  - { name: b, checks: [{ limit: all, key: client-address, cost: 0 }] }",
      ),
    );
    const again = configOf(stringify(parse(JSON.stringify(describeConfig(config)))));
    expect(again.policies).toEqual(config.policies);
    expect(again.hash).toBe(config.hash);
  });

  it("are part of what must be equal in all pods", () => {
    expect(configOf(withKey("const:a")).hash).not.toBe(configOf(withKey("const:b")).hash);
  });
});

describe("a policy is refused", () => {
  it("for a limit that is not there", () => {
    const text = withPolicies("policies: [{ name: p, checks: [{ limit: al, key: const:k }] }]");
    expect(problemsOf(text)).toEqual([
      "a.yaml:5:41: policies[0].checks[0].limit: " +
        'is not the name of a limit in this file; did you mean all?; got "al"',
    ]);
  });

  it("but not for a limit that has a problem of its own", () => {
    const text = withKey("const:k").replace("9/s", "9");
    expect(problemsOf(text)).toHaveLength(1);
  });

  it("for a cost that the limit can never admit", () => {
    const [problem] = problemsOf(
      withPolicies("policies: [{ name: p, checks: [{ limit: all, key: const:k, cost: 10 }] }]"),
    );
    expect(problem).toContain("is above the burst of all, 9: it could never be admitted; got 10");
  });

  it.each([
    ["head:x", "must be header:NAME, path:NAME"],
    ["x-api-key", "client-address or const:VALUE"],
    ["headers:x", "did you mean header?"],
    ["client-adress", "did you mean client-address?"],
    ["'header:'", "must have a name of 1 to 128 characters after header:"],
    ["'const:'", "must have 1 to 256 bytes after const:"],
    ["'header:x y'", "is not a name that a header can have"],
    ["'cookie:a=b'", "is not a name that a cookie can have"],
    ["header:X-Forwarded-For", "use client-address"],
    ["client-address", "needs trusted_hops, in forward or in the policy"],
    ["path:id", "needs match.path with a segment :id"],
    ["7", "must be header:NAME"],
    ["[]", "must be a list of 1 to 8 items"],
    ["[const:a, const]", "policies[0].checks[0].key[1]: must be header:NAME"],
  ])("for the key %s", (key, says) => {
    const problems = problemsOf(withKey(key));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(/^a\.yaml:5:\d+: policies\[0\]\.checks\[0\]\.key/);
    expect(problems[0]).toContain(says);
  });

  it("for a segment that one of its patterns does not have", () => {
    const [problem] = problemsOf(withKey("path:uid", " match: { path: [/u/:uid, /v/:uuid] },"));
    expect(problem).toContain("needs a segment :uid in /v/:uuid of match.path; did you mean uuid?");
  });

  it.each([
    ["api", "must begin with /"],
    ["/a/**/b/**", "may hold ** once"],
    ["/:a/:a", "names the segment :a twice"],
    ["/a*", "has * beside other characters; * and ** are whole segments"],
    ["/:/x", "has a segment : without a name"],
    ["/a//b", "has an empty segment"],
    ["/a/../b", "has a dot segment"],
    ["/a%20b", "is compared with the decoded path"],
    ["/a?b", "is compared with the decoded path, without the query"],
    [`/${"a".repeat(1_024)}`, "must be at most 1024 long"],
  ])("for the pattern %s", (path, says) => {
    const [problem, ...more] = problemsOf(withKey("const:k", ` match: { path: "${path}" },`));
    expect(more).toEqual([]);
    expect(problem).toContain(`policies[0].match.path: ${says}`);
  });

  it("for a pattern in a list, which is named", () => {
    const [problem] = problemsOf(withKey("const:k", " match: { path: [/a, b] },"));
    expect(problem).toContain('policies[0].match.path[1]: must begin with /; got "b"');
  });

  it.each([
    [" match: { methods: [get] },", "must be an HTTP method in capitals"],
    [" match: { pat: /x },", "unknown field; did you mean path?"],
    [" trusted_hops: 17,", "must be a whole number from 0 to 16"],
    [" ipv6_prefix: 8,", "must be a whole number from 16 to 128"],
  ])("for its fields %s", (fields, says) => {
    const [problem, ...more] = problemsOf(withKey("const:k", fields));
    expect(more).toEqual([]);
    expect(problem).toContain(says);
  });

  it("for a name or a check that is there twice", () => {
    const check = "{ limit: all, key: header:A }, { limit: all, key: header:a, cost: 2 }";
    const problems = problemsOf(
      withPolicies(
        "policies:",
        "  - { name: p, checks: [{ limit: all, key: const:k }] }",
        `  - { name: p, checks: [${check}] }`,
      ),
    );
    expect(problems).toHaveLength(2);
    expect(problems[0]).toContain("policies[1].name: is a duplicate of line 6");
    expect(problems[1]).toContain("policies[1].checks[1]: has the limit and key of line 7");
  });
});
