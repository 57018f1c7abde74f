/** The Redis of k8s/redis, as far as it runs without a cluster: a real server with these files. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { configOf } from "../config/loading.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { startSidecar, stopSidecars } from "../support/sidecar.ts";
import { find, objectsOf } from "./manifest-files.ts";

/** As redis.conf says. */
const MEMORY_BYTES = 400 * 2 ** 20;

const folder = mkdtempSync(join(tmpdir(), "aliquot-redis-"));
let secret: ReadonlyMap<string, string>;
let server: RedisServer;

beforeAll(async () => {
  secret = secretOfDocs();
  writeFileSync(join(folder, "users.acl"), secret.get("users.acl") ?? "");
  writeFileSync(join(folder, "password"), secret.get("password") ?? "");
  server = await startRedis({ args: argumentsOfConf() });
});

afterAll(async () => {
  await stopSidecars();
  await server.dispose();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs the commands of docs/kubernetes.md, with a kubectl that only says what it was given. */
function secretOfDocs(): ReadonlyMap<string, string> {
  const docs = readFileSync("docs/kubernetes.md", "utf8");
  const script = /<!-- test: redis-secret -->\n```sh\n([\s\S]*?)```/.exec(docs)?.[1];
  if (script === undefined) throw new Error("docs/kubernetes.md does not make a Secret");
  const kubectl = join(folder, "kubectl");
  writeFileSync(kubectl, `#!/bin/sh\nprintf '%s\\0' "$@"\n`);
  chmodSync(kubectl, 0o755);
  const { PATH = "" } = process.env;
  const env = { PATH: `${folder}:${PATH}` };
  const run = spawnSync("sh", ["-eu", "-c", script], { encoding: "utf8", env });
  expect(run.stderr).toBe("");
  const literals = [...run.stdout.matchAll(/--from-literal=([\w.-]+)=([^\0]*)/g)];
  return new Map(literals.map(([, name = "", value = ""]) => [name, value]));
}

/** Every line of redis.conf as an argument, but for what is not ours to choose here. */
function argumentsOfConf(): string[] {
  const lines = readFileSync("k8s/redis/redis.conf", "utf8").split("\n");
  const settings = lines
    .map((line) => line.replace(/#.*/, "").trim())
    .filter((line) => line !== "");
  return settings.flatMap((line) => {
    const [name = "", ...values] = line.split(" ");
    if (["dir", "port", "bind"].includes(name)) return [];
    if (name === "aclfile") return ["--aclfile", join(folder, "users.acl")];
    return [`--${name}`, ...values.map((value) => (value === '""' ? "" : value))];
  });
}

/** A Valkey calls it otherwise. */
const HAS_CLIENT = spawnSync("redis-cli", ["--version"]).status === 0;

const connect = (username?: string, password?: string): Redis =>
  new Redis(server.port, server.host, {
    ...(username !== undefined && { username, password: password ?? "" }),
    enableReadyCheck: false,
    lazyConnect: false,
    maxRetriesPerRequest: 0,
  });

describe("the Redis of the example", () => {
  it("keeps what it is given, evicts nothing and writes nothing to disk", async () => {
    const operator = connect("operator", secret.get("operator-password"));
    const setting = async (name: string): Promise<string> =>
      ((await operator.config("GET", name)) as string[])[1] ?? "";
    expect(await setting("maxmemory-policy")).toBe("noeviction");
    expect(await setting("maxmemory")).toBe(`${MEMORY_BYTES}`);
    expect([await setting("save"), await setting("appendonly")]).toEqual(["", "no"]);
    operator.disconnect();
  });

  it("lets everybody ping, as the probes do, and nothing else", async () => {
    const anybody = connect();
    expect(await anybody.ping()).toBe("PONG");
    await expect(anybody.get("aliquot:a")).rejects.toThrow("NOPERM");
    await expect(anybody.call("INFO")).rejects.toThrow("NOPERM");
    anybody.disconnect();
  });

  it("carries a sidecar that has the password from the Secret", async () => {
    const { redis } = configOf(readFileSync("k8s/example/aliquot.yaml", "utf8"));
    expect(redis).toMatchObject({ username: "aliquot" });
    const place = `url: ${server.url}\n  username: aliquot`;
    const sidecar = await startSidecar({
      limits: "  - { name: api, rate: 100/s, burst: 200 }",
      extra: `redis:\n  ${place}\n  password_file: ${join(folder, "password")}`,
    });
    await expect.poll(() => sidecar.metric("aliquot_store_up"), { timeout: 10_000 }).toBe(1);
    await sidecar.check("api", "a");
    const ok = 'aliquot_reconcile_total{outcome="ok"}';
    await expect.poll(() => sidecar.metric(ok), { timeout: 10_000 }).toBeGreaterThan(0);
    expect(await sidecar.metric("aliquot_fallback_active")).toBe(0);
    expect(await sidecar.metric('aliquot_reconcile_total{outcome="refused"}')).toBe(0);
  });

  it("is given less memory by its configuration than by its container", () => {
    const set = find<StatefulSet>(objectsOf("k8s/redis/stateful-set.yaml"), "StatefulSet");
    const [container] = set.spec.template.spec.containers;
    const limit = Number(/^(\d+)Mi$/.exec(container.resources.limits.memory)?.[1]) * 2 ** 20;
    expect(MEMORY_BYTES).toBeLessThan(limit * 0.8);
    expect(container.resources.requests.memory).toBe(container.resources.limits.memory);
  });

  it.skipIf(!HAS_CLIENT)("is found well by its probes, and not well where it refuses", () => {
    const set = find<StatefulSet>(objectsOf("k8s/redis/stateful-set.yaml"), "StatefulSet");
    const [{ readinessProbe, livenessProbe }] = set.spec.template.spec.containers;
    for (const probe of [readinessProbe, livenessProbe]) {
      const [program = "", ...flags] = probe.exec.command;
      const ask = (...more: readonly string[]): number | null =>
        spawnSync(program, ["-p", `${server.port}`, ...more, ...flags]).status;
      expect(ask()).toBe(0);
      expect(ask("--user", "aliquot", "--pass", secret.get("password") ?? "")).not.toBe(0);
    }
  });

  it("mounts the Secret and the Service that the example's configuration names", () => {
    const { redis } = configOf(readFileSync("k8s/example/aliquot.yaml", "utf8"));
    const service = find(objectsOf("k8s/redis/service.yaml"), "Service");
    expect(JSON.stringify(redis)).toContain(service.metadata.name);
    expect(redis?.password).toEqual({ kind: "file", path: "/etc/aliquot-redis/password" });
  });
});

interface Probe {
  readonly exec: { readonly command: readonly string[] };
}

interface StatefulSet {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly [
          {
            readonly resources: {
              readonly requests: { readonly memory: string };
              readonly limits: { readonly memory: string };
            };
            readonly readinessProbe: Probe;
            readonly livenessProbe: Probe;
          },
        ];
      };
    };
  };
}
