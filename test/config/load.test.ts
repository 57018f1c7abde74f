import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { describeConfig } from "../../src/config/effective.ts";
import { readConfigFile } from "../../src/config/read-file.ts";
import { configOf, minimal, type Outside, problemsOf } from "./loading.ts";

const withRedis = (redis: string, outside: Outside = {}) =>
  configOf(minimal("fleet: f", `redis: ${redis}`), outside).redis;

describe("a configuration that is accepted", () => {
  it("has the documented defaults in units of the core", () => {
    expect(configOf(minimal())).toMatchObject({
      file: "a.yaml",
      fleet: "local",
      podId: "host-1",
      listen: {
        http: { socket: "/run/aliquot/http.sock", tcp: { host: "127.0.0.1", port: 8790 } },
        grpc: { socket: "/run/aliquot/grpc.sock", tcp: undefined },
        ops: { host: "0.0.0.0", port: 8792 },
        socketMode: 0o660,
        allowRemote: false,
      },
      redis: undefined,
      reconcile: { intervalUs: 100_000 },
      decisionTimeoutUs: 10_000,
      drainTimeoutUs: 10_000_000,
      membership: { source: "redis", heartbeatUs: 1_000_000, timeoutUs: 5_000_000 },
      fallback: { policy: "local", margin: 0.9, maxPods: 20 },
      headers: ["ietf"],
      keysMax: 100_000,
      logLevel: "info",
      ops: { showKeys: false },
    });
  });

  it("shows keys only where it says so", () => {
    expect(configOf(minimal("ops: { show_keys: true }")).ops).toEqual({ showKeys: true });
    expect(problemsOf(minimal('ops: { show_keys: "yes" }'))).toEqual([
      'a.yaml:3:19: ops.show_keys: must be true or false; got "yes"',
    ]);
    expect(problemsOf(minimal("ops: { show_key: true }"))[0]).toContain("did you mean show_keys?");
  });

  it("has limits as the engine wants them, in file order", () => {
    const { limits } = configOf(
      [
        "version: 1",
        "reconcile: { interval: 200ms }",
        "fallback: { margin: 0.5 }",
        "limits:",
        "  - { name: b, rate: 100/s, burst: 200, mode: hybrid, shadow: true, fallback: open }",
        "  - { name: a, rate: 10/15m, fallback: { policy: closed, max_pods: 3 } }",
      ].join("\n"),
    );
    expect(limits).toMatchObject([
      {
        name: "b",
        rate: 100,
        burst: 200,
        mode: "hybrid",
        intervalUs: 200_000,
        shadow: true,
        fallback: { policy: "open", margin: 0.5, maxPods: 20 },
      },
      {
        name: "a",
        burst: 1,
        mode: "auto",
        shadow: false,
        fallback: { policy: "closed", margin: 0.5, maxPods: 3 },
      },
    ]);
  });

  it.each([
    ["100/s", 100],
    ["2500/s", 2500],
    ["90/m", 1],
    ["150/m", 2],
    ["1/h", 1],
    ["5/100ms", 50],
  ])("gives a rate of %s a burst of one second, at least 1: %d", (rate, burst) => {
    const text = `version: 1\nlimits: [{ name: a, rate: ${rate} }]`;
    expect(configOf(text).limits[0]?.burst).toBe(burst);
  });

  it("keeps overrides as limits of their own that inherit everything but rate and burst", () => {
    const [limit] = configOf(
      [
        "version: 1",
        "limits:",
        "  - name: a",
        "    rate: 10/s",
        "    shadow: true",
        "    fallback: closed",
        "    overrides: [{ key: tenant-42, rate: 50/s }, { key: '7', rate: 1/s, burst: 9 }]",
      ].join("\n"),
    ).limits;
    expect([...(limit?.overrides.keys() ?? [])]).toEqual(["tenant-42", "7"]);
    expect(limit?.overrides.get("tenant-42")).toMatchObject({
      name: "a",
      rate: 50,
      burst: 50,
      shadow: true,
      fallback: { policy: "closed" },
    });
    expect(limit?.overrides.get("7")).toMatchObject({ rate: 1, burst: 9 });
  });

  it("may use anchors and aliases", () => {
    const text = "version: 1\nlimits:\n  - { name: a, rate: &r 7/s }\n  - { name: b, rate: *r }";
    expect(configOf(text).limits.map((limit) => limit.rate)).toEqual([7, 7]);
  });

  it("allows a decision listener for everyone when it is told to", () => {
    const text = minimal("listen: { http: { tcp: 0.0.0.0:8790 }, allow_remote: true }");
    expect(configOf(text).listen.http.tcp).toEqual({ host: "0.0.0.0", port: 8790 });
  });

  it.each(["127.0.0.1:0", "127.9.9.9:1", "'[::1]:8790'", "localhost:8790"])(
    "takes %s for an address of this machine only",
    (address) => {
      expect(problemsOf(minimal(`listen: { http: { tcp: ${address} } }`))).toEqual([]);
    },
  );

  it("turns listeners off by the word off", () => {
    const { listen } = configOf(minimal("listen: { http: { tcp: off }, ops: off }"));
    expect(listen.http.tcp).toBeUndefined();
    expect(listen.ops).toBeUndefined();
  });

  it("counts pods as configured for the static source", () => {
    const text = minimal(
      "fleet: f",
      "redis: { url: redis://h }",
      "membership: { source: static, pods: 4 }",
    );
    expect(configOf(text).membership).toMatchObject({ source: "static", pods: 4 });
  });
});

describe("the redis section", () => {
  it("names a single server, a cluster or a sentinel group", () => {
    expect(withRedis("{ url: redis://h }")).toMatchObject({
      topology: { kind: "single", server: { host: "h", port: 6379 } },
      database: 0,
      tls: undefined,
      commandTimeoutUs: 50_000,
    });
    expect(withRedis("{ url: 'rediss://[::1]:1234/7' }")).toMatchObject({
      topology: { kind: "single", server: { host: "::1", port: 1234 } },
      database: 7,
      tls: { caFile: undefined, certFile: undefined, keyFile: undefined, serverName: undefined },
    });
    expect(withRedis("{ cluster: [redis://a, redis://b:7000] }")).toMatchObject({
      topology: {
        kind: "cluster",
        servers: [
          { host: "a", port: 6379 },
          { host: "b", port: 7000 },
        ],
      },
    });
    expect(withRedis("{ sentinel: { name: main, urls: [redis://s/2] } }")).toMatchObject({
      topology: { kind: "sentinel", name: "main", sentinels: [{ host: "s", port: 26379 }] },
      database: 2,
    });
  });

  it("resolves file names against the folder of the configuration file", () => {
    const text = minimal(
      "fleet: f",
      "redis:",
      "  url: rediss://h",
      "  password_file: secret/pw",
      "  tls: { ca_file: /etc/ca.pem }",
    );
    expect(configOf(text, { path: "/etc/aliquot/a.yaml" }).redis).toMatchObject({
      password: { kind: "file", path: "/etc/aliquot/secret/pw" },
      tls: { caFile: "/etc/ca.pem" },
    });
  });

  it("takes a password from the environment, before any file, and never prints it", () => {
    const env = { ALIQUOT_REDIS_PASSWORD: "hush" };
    const text = minimal("fleet: f", "redis: { url: redis://h, password_file: pw }");
    const config = configOf(text, { env });
    expect(config.redis?.password).toEqual({ kind: "value", value: "hush" });
    expect(JSON.stringify(describeConfig(config))).not.toContain("hush");
  });

  it("takes a password from a URL in the environment but not from a URL in a flag", () => {
    const url = "redis://u%40x:p%2Fw@h/1";
    const config = configOf(minimal("fleet: f"), { env: { ALIQUOT_REDIS_URL: url } });
    expect(config.redis).toMatchObject({
      username: "u@x",
      password: { kind: "value", value: "p/w" },
      database: 1,
    });
    expect(JSON.stringify(describeConfig(config))).not.toContain("p/w");
    const [problem] = problemsOf(minimal("fleet: f"), { flags: { "redis-url": url } });
    expect(problem).toMatch(/^flag --redis-url: redis\.url: holds a password/);
    expect(problem).not.toContain("p%2Fw");
  });
});

describe("precedence", () => {
  it("is flags, environment, file, defaults", () => {
    const text = minimal("keys_max: 1", "log_level: warn", "decision_timeout: 5ms", "fleet: f");
    const env = { ALIQUOT_KEYS_MAX: "2", ALIQUOT_LOG_LEVEL: "debug", ALIQUOT_FLEET: "" };
    const config = configOf(text, { env, flags: { "keys-max": "3" } });
    expect(config).toMatchObject({
      keysMax: 3,
      logLevel: "debug",
      decisionTimeoutUs: 5_000,
      fleet: "f",
      drainTimeoutUs: 10_000_000,
    });
  });

  it("lets a Redis URL from outside displace the file's cluster", () => {
    const text = minimal("fleet: f", "redis: { cluster: [redis://a], command_timeout: 9ms }");
    expect(configOf(text, { flags: { "redis-url": "redis://b" } }).redis).toMatchObject({
      topology: { kind: "single", server: { host: "b" } },
      commandTimeoutUs: 9_000,
    });
  });

  it("reads switches and sockets from the environment", () => {
    const env = {
      ALIQUOT_LISTEN_HTTP_TCP: "0.0.0.0:1",
      ALIQUOT_LISTEN_HTTP_SOCKET: "off",
      ALIQUOT_LISTEN_ALLOW_REMOTE: "true",
      ALIQUOT_OPS: "127.0.0.1:0",
    };
    expect(configOf(minimal(), { env }).listen).toMatchObject({
      http: { socket: undefined, tcp: { host: "0.0.0.0", port: 1 } },
      ops: { host: "127.0.0.1", port: 0 },
      allowRemote: true,
    });
  });

  it("ignores variables that Kubernetes makes of services of our name", () => {
    const env = { ALIQUOT_PORT: "tcp://10.0.0.1:80", ALIQUOT_SERVICE_HOST: "10.0.0.1" };
    expect(problemsOf(minimal(), { env })).toEqual([]);
  });

  it("finds the pod's id in flag, ALIQUOT_POD_ID, POD_UID and host name, in this order", () => {
    const env = { ALIQUOT_POD_ID: "b", POD_UID: "c" };
    expect(configOf(minimal(), { env, flags: { "pod-id": "a" } }).podId).toBe("a");
    expect(configOf(minimal(), { env }).podId).toBe("b");
    expect(configOf(minimal(), { env: { ...env, ALIQUOT_POD_ID: "" } }).podId).toBe("c");
    expect(configOf(minimal(), { hostname: "web-0.web" }).podId).toBe("web-0.web");
  });
});

describe("the effective configuration", () => {
  it.each(["examples/quickstart.yaml", "examples/redis.yaml"])(
    "of %s, written to a file, gives itself again",
    (path) => {
      const config = configOf(readFileSync(path, "utf8"), { path });
      const again = configOf(stringify(describeConfig(config)), { path: "b.yaml" });
      expect(describeConfig(again)).toEqual(describeConfig(config));
      expect(again.hash).toBe(config.hash);
    },
  );

  it("has a hash that pods share and that a change of any limit changes", () => {
    const hash = configOf(minimal()).hash;
    expect(configOf(`# a comment\n${minimal()}`, { hostname: "host-2", path: "b.yaml" }).hash).toBe(
      hash,
    );
    expect(configOf(minimal("keys_max: 5")).hash).not.toBe(hash);
    expect(configOf(minimal().replace("10/s", "11/s")).hash).not.toBe(hash);
  });
});

describe("reading a configuration file", () => {
  it("gives its text", async () => {
    const { text } = await readConfigFile("examples/quickstart.yaml");
    expect(text).toContain("fleet: quickstart");
  });

  it.each([
    ["examples/none.yaml", /does not exist/],
    ["examples", /is a directory/],
    ["/bin/bash", /at most 1048576 bytes|UTF-8/],
  ])("tells a problem about a file that cannot be read: %s", async (path, message) => {
    const { problem } = await readConfigFile(path);
    expect(problem).toMatchObject({ source: path, message: expect.stringMatching(message) });
  });
});
