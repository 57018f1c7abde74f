import { describe, expect, it } from "vitest";
import { minimal, problemsOf } from "./loading.ts";

const limit = (...lines: string[]): string =>
  ["version: 1", "limits:", "  - name: a", ...lines.map((line) => `    ${line}`)].join("\n");

/** The whole text of every problem, with the place of the value that is wrong. */
const table: readonly [what: string, text: string, problems: readonly string[]][] = [
  [
    "an empty file",
    "",
    ["a.yaml:1:1: the file is empty; it must hold at least version: 1 and limits"],
  ],
  [
    "a file of comments",
    "# nothing\n\n",
    ["a.yaml:1:1: the file is empty; it must hold at least version: 1 and limits"],
  ],
  [
    "a list in place of a map",
    "- a\n- b\n",
    ["a.yaml:1:1: the file must be a map with version, limits and other fields; got a list"],
  ],
  [
    "no version and no limits",
    "fleet: x\n",
    [
      "a.yaml:1:1: version: is missing; must be 1",
      "a.yaml:1:1: limits: is missing; must be a list of 1 to 1000 items",
    ],
  ],
  [
    "another version",
    "version: 2\nlimits: [{ name: a, rate: 10/s }]",
    ["a.yaml:1:10: version: must be 1; got 2"],
  ],
  [
    "an empty list of limits",
    "version: 1\nlimits: []",
    ["a.yaml:2:9: limits: must be a list of 1 to 1000 items; got a list"],
  ],
  [
    "a misspelt field",
    limit("rate: 2/h", "burts: 10"),
    ["a.yaml:5:5: limits[0].burts: unknown field; did you mean burst?"],
  ],
  [
    "a field that resembles nothing",
    minimal("listen:", "  http: { foo: 1 }"),
    ["a.yaml:4:11: listen.http.foo: unknown field; known here: socket, tcp"],
  ],
  [
    "a field named like a method of objects",
    minimal("listen:", "  http: { constructor: 1, __proto__: { a: 1 } }"),
    [
      "a.yaml:4:11: listen.http.constructor: unknown field; known here: socket, tcp",
      "a.yaml:4:27: listen.http.__proto__: unknown field; known here: socket, tcp",
    ],
  ],
  [
    "a field given twice",
    limit("rate: 1/s", "rate: 2/s"),
    ['a.yaml:5:5: duplicate field "rate"; each may be given once'],
  ],
  [
    "two limits of one name",
    "version: 1\nlimits:\n  - { name: a, rate: 1/s }\n  - { name: a, rate: 2/s }",
    ['a.yaml:4:13: limits[1].name: is a duplicate of line 3; each must be unique; got "a"'],
  ],
  [
    "two overrides of one key",
    limit("rate: 1/s", "overrides:", "  - { key: k, rate: 1/s }", "  - { key: k, rate: 2/s }"),
    [
      "a.yaml:7:16: limits[0].overrides[1].key: " +
        'is a duplicate of line 6; each must be unique; got "k"',
    ],
  ],
  [
    "a rate that is no rate",
    limit("rate: ten"),
    [
      "a.yaml:4:11: limits[0].rate: " +
        'must be whole tokens per span, such as 100/s, 90/m or 10/15m; got "ten"',
    ],
  ],
  [
    "a rate that is a number",
    limit("rate: 100"),
    [
      "a.yaml:4:11: limits[0].rate: " +
        "must be whole tokens per span, such as 100/s, 90/m or 10/15m; got 100",
    ],
  ],
  [
    "a rate left empty",
    limit("rate:", "burst: 1"),
    [
      "a.yaml:4:5: limits[0].rate: " +
        "has no value; must be whole tokens per span, such as 100/s, 90/m or 10/15m; got null",
    ],
  ],
  [
    "no rate",
    limit("burst: 1"),
    [
      "a.yaml:3:5: limits[0].rate: " +
        "is missing; must be whole tokens per span, such as 100/s, 90/m or 10/15m",
    ],
  ],
  [
    "a negative rate",
    limit("rate: -5/s"),
    ['a.yaml:4:11: limits[0].rate: must be positive; got "-5/s"'],
  ],
  [
    "a rate of zero",
    limit("rate: 0/s"),
    ['a.yaml:4:11: limits[0].rate: must be at least one token per span; got "0/s"'],
  ],
  [
    "half a token",
    limit("rate: 0.5/s"),
    ['a.yaml:4:11: limits[0].rate: must be whole tokens per span; write 1/2s; got "0.5/s"'],
  ],
  [
    "a burst of one and a half",
    limit("rate: 1/s", "burst: 1.5"),
    ["a.yaml:5:12: limits[0].burst: must be a whole number of at least 1; got 1.5"],
  ],
  [
    "a burst that cannot be counted exactly",
    limit("rate: 1/s", "burst: 4503599627370496"),
    [
      "a.yaml:5:12: limits[0].burst: a burst of 4503599627370496 with 1 tokens per 1000000 us " +
        "cannot be counted exactly; choose a smaller burst or a shorter span; got 4503599627370496",
    ],
  ],
  [
    "a name with capitals",
    "version: 1\nlimits: [{ name: Api, rate: 1/s }]",
    [
      "a.yaml:2:18: limits[0].name: " +
        'must start with a-z and hold only a-z, 0-9 and -, at most 63 characters; got "Api"',
    ],
  ],
  [
    "a fallback of another kind",
    limit("rate: 1/s", "fallback: 7"),
    [
      "a.yaml:5:15: limits[0].fallback: " +
        "must be local, open or closed, or a map with policy, margin, max_pods; got 7",
    ],
  ],
  [
    "faults inside a fallback map",
    limit("rate: 1/s", "fallback: { polcy: open, margin: 1.5 }"),
    [
      "a.yaml:5:17: limits[0].fallback.polcy: unknown field; did you mean policy?",
      "a.yaml:5:38: limits[0].fallback.margin: must be a number above 0 and at most 1; got 1.5",
    ],
  ],
  [
    "a margin of zero",
    minimal("fallback: { margin: 0 }"),
    ["a.yaml:3:21: fallback.margin: must be a number above 0 and at most 1; got 0"],
  ],
  [
    "durations out of their range",
    minimal("decision_timeout: 2s", "reconcile: { interval: 10 }"),
    [
      "a.yaml:3:19: decision_timeout: " +
        'must be a duration from 1ms to 1s, such as 100ms, 1s or 2m; got "2s"',
      "a.yaml:4:24: reconcile.interval: " +
        "must be a duration from 20ms to 10s, such as 100ms, 1s or 2m; got 10",
    ],
  ],
  [
    "a socket mode without quotes, which YAML takes for a decimal number",
    minimal("listen: { socket_mode: 0660 }"),
    [
      "a.yaml:3:24: listen.socket_mode: " +
        'must be three octal digits in quotes, such as "0660"; got 660',
    ],
  ],
  [
    "a decision listener for everyone",
    minimal("listen:", "  http: { tcp: 0.0.0.0:8790 }"),
    [
      "a.yaml:4:16: listen.http.tcp: can be reached from other machines, and nobody is asked who " +
        'they are; use 127.0.0.1, or set listen.allow_remote: true; got "0.0.0.0:8790"',
    ],
  ],
  [
    "no decision listener at all",
    minimal("listen:", "  http: { tcp: off, socket: off }"),
    ["a.yaml:4:9: listen.http: has no listener; give a socket, a TCP address or both"],
  ],
  [
    "one port for two listeners",
    minimal("listen: { ops: 0.0.0.0:8790 }"),
    ['a.yaml:3:16: listen.ops: needs another port than listen.http.tcp; got "0.0.0.0:8790"'],
  ],
  [
    "an address without a port",
    minimal("listen: { ops: localhost }"),
    ['a.yaml:3:16: listen.ops: must be host:port, such as 127.0.0.1:8790, or off; got "localhost"'],
  ],
  [
    "a socket path that no sockaddr can hold",
    minimal(`listen: { http: { socket: /${"x".repeat(107)} } }`),
    [
      "a.yaml:3:27: listen.http.socket: must be an absolute path of at most 107 bytes, or off; " +
        `got "/${"x".repeat(57)}…`,
    ],
  ],
  [
    "a password in the URL, together with others of the section",
    minimal("fleet: f", "redis:", "  url: redis://u:hush@h/0", "  password: hush"),
    [
      "a.yaml:5:8: redis.url: holds a password; use redis.password_file or the variable " +
        'ALIQUOT_REDIS_PASSWORD; got "redis://…@h/0"',
      "a.yaml:6:3: redis.password: unknown field; secrets are not kept in this file; " +
        "use password_file or the variable ALIQUOT_REDIS_PASSWORD",
    ],
  ],
  [
    "Redis without a fleet",
    minimal("redis: { url: redis://h }"),
    [
      "a.yaml:1:1: fleet: is missing; with redis, name the fleet whose pods share these limits, " +
        "such as fleet: checkout",
    ],
  ],
  [
    "Redis nowhere",
    minimal("fleet: f", "redis: { username: u }"),
    ["a.yaml:4:8: redis: needs exactly one of url, cluster and sentinel; none is there"],
  ],
  [
    "Redis in two places",
    minimal("fleet: f", "redis: { url: redis://h, cluster: [redis://i] }"),
    [
      "a.yaml:4:8: redis: needs exactly one of url, cluster and sentinel; there are url and cluster",
    ],
  ],
  [
    "a URL of another kind",
    minimal("fleet: f", "redis: { url: http://h }"),
    [
      "a.yaml:4:15: redis.url: " +
        'must be a URL such as redis://redis:6379/0 or rediss://redis:6379/0; got "http://h"',
    ],
  ],
  [
    "options in the URL",
    minimal("fleet: f", "redis: { url: 'redis://h/0?timeout=1' }"),
    [
      "a.yaml:4:15: redis.url: must end after the database number; options are fields of redis; " +
        'got "redis://h/0?timeout=1"',
    ],
  ],
  [
    "TLS files for a connection without TLS",
    minimal("fleet: f", "redis: { url: redis://h, tls: { ca_file: a } }"),
    ["a.yaml:4:31: redis.tls: has no effect on redis:// URLs; use rediss://"],
  ],
  [
    "a certificate without its key",
    minimal("fleet: f", "redis: { url: rediss://h, tls: { cert_file: a } }"),
    ["a.yaml:4:32: redis.tls: needs both cert_file and key_file, or neither"],
  ],
  [
    "a heartbeat as long as the timeout",
    minimal("membership: { heartbeat: 5s }"),
    ["a.yaml:3:13: membership.timeout: must be at least twice membership.heartbeat"],
  ],
  [
    "a static count without a number, and without anybody to share with",
    minimal("membership: { source: static }"),
    [
      "a.yaml:3:13: membership.pods: is missing; source: static needs the number of pods",
      "a.yaml:3:23: membership.source: cannot be static without redis: " +
        'with the embedded store one pod is the whole fleet; got "static"',
    ],
  ],
  [
    "a number of pods that nobody would look at",
    minimal("membership: { pods: 3 }"),
    ["a.yaml:3:21: membership.pods: is only for source: static; leave it out; got 3"],
  ],
  [
    "header shapes that write the same names",
    minimal("headers: [x-delta, x-epoch]"),
    [
      "a.yaml:3:10: headers: may hold one of x-delta, x-epoch and draft-03: they share names; got a list",
    ],
  ],
  [
    "an unknown header shape",
    minimal("headers: [ietf, draft-06]"),
    ['a.yaml:3:17: headers[1]: must be ietf, x-delta, x-epoch or draft-03; got "draft-06"'],
  ],
  [
    "two documents",
    `${minimal()}\n---\n${minimal()}`,
    ["a.yaml:3:1: must hold one YAML document, not several"],
  ],
  [
    "an alias of nothing",
    minimal("fleet: *x"),
    [
      "a.yaml:3:8: is not usable YAML: Unresolved alias (the anchor must be set before the alias): x",
    ],
  ],
  [
    "an unknown tag",
    minimal("fleet: !!js/function x"),
    ["a.yaml:3:8: is not valid YAML: Unresolved tag: tag:yaml.org,2002:js/function"],
  ],
];

describe("a configuration that is refused", () => {
  it.each(table)(
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
      "  - { name: a, rate: ten, mode: leased }",
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

describe("what is not available yet", () => {
  it.each([
    ["limits[0].mode", "mode: exact"],
    ["limits[0].mode", "mode: leased"],
    ["limits[0].tolerance", "tolerance: 0.5"],
  ])("is refused, never accepted and ignored: %s (%s)", (field, line) => {
    expect(problemsOf(limit("rate: 1/s", line))).toEqual([
      expect.stringMatching(
        `^a.yaml:5:[0-9]+: ${field.replace(/[[\]]/g, "\\$&")}: is not yet available`,
      ),
    ]);
  });

  it.each([
    ["listen.grpc", "listen: { grpc: { socket: /run/aliquot/grpc.sock } }"],
    ["membership.source", "membership: { source: kubernetes }"],
    ["membership.source", "membership: { source: dns }"],
    ["policies", "policies: [{ name: p, checks: [{ limit: a, key: 'const:all' }] }]"],
    ["envoy", "envoy: { domains: [./envoy/*.yaml] }"],
  ])("is refused, never accepted and ignored: %s (%s)", (field, line) => {
    expect(problemsOf(minimal(line))).toEqual([
      expect.stringMatching(`^a.yaml:3:[0-9]+: ${field}: is not yet available`),
    ]);
  });

  it("is refused in flags and environment as well", () => {
    expect(problemsOf(minimal(), { env: { ALIQUOT_LISTEN_GRPC_TCP: "127.0.0.1:8791" } })).toEqual([
      expect.stringMatching(
        "^environment variable ALIQUOT_LISTEN_GRPC_TCP: listen.grpc: is not yet available",
      ),
    ]);
  });
});
