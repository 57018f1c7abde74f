/**
 * One sidecar, a real Redis, and every door that callers have: what callers choose as keys never
 * meets, never reaches Redis as bytes of a name, and never breaks a line of the log.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "@grpc/grpc-js";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, connect, OK } from "../grpc/rate-limit-door.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Sidecar, startSidecar, stopSidecars } from "../support/sidecar.ts";

const LIMIT = "  - { name: triple, rate: 1/h, burst: 3 }";
const RULE = "{ rate_limit: { unit: hour, requests_per_unit: 3 }";
const EXTRA = [
  "decision_timeout: 1s", // also on a busy machine it shall be the store that decides
  "forward: { trusted_hops: 1 }",
  "policies:",
  "  - { name: query, checks: [{ limit: triple, key: query:v }] }",
  "  - { name: user, checks: [{ limit: triple, key: header:x-user }] }",
  "  - { name: ip, checks: [{ limit: triple, key: client-address }] }",
].join("\n");

let folder: string;
let redis: RedisServer;
let admin: Redis;
let sidecar: Sidecar;
let grpc: Client;
let resp: Redis;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "aliquot-identities-"));
  for (const [domain, ...keys] of [
    ["x", "y_z", "user", "ip"],
    ["x_y", "z"],
  ]) {
    const rules = keys.map((key) => `  - ${RULE.replace("{", `{ key: ${key},`)} }`);
    writeFileSync(
      join(folder, `${domain}.yaml`),
      `domain: ${domain}\ndescriptors:\n${rules.join("\n")}\n`,
    );
  }
  redis = await startRedis();
  admin = new Redis(redis.port, redis.host, { protocol: 2 });
  const socket = join(folder, "resp.sock");
  sidecar = await startSidecar({
    limits: LIMIT,
    redisUrl: redis.url,
    grpcSocket: join(folder, "grpc.sock"),
    env: { ALIQUOT_LISTEN_RESP_SOCKET: socket },
    extra: `${EXTRA}\nenvoy: { domains: ["${folder}/*.yaml"] }`,
  });
  grpc = connect(join(folder, "grpc.sock"));
  resp = new Redis({ path: socket, lazyConnect: true, retryStrategy: () => null });
  await resp.connect();
});

afterAll(async () => {
  grpc.close();
  resp.disconnect();
  admin.disconnect();
  await stopSidecars();
  await redis.dispose();
  rmSync(folder, { recursive: true, force: true });
});

interface Verdict {
  readonly allowed: boolean;
  readonly remaining: number;
}

type Door = (key: string) => Promise<Verdict>;

const overHttp: Door = async (key) => {
  const { allowed, remaining } = await sidecar.check("triple", key);
  return { allowed, remaining };
};

const overGrpc =
  (domain: string, name: string): Door =>
  async (value) => {
    const descriptors = [{ entries: [{ key: name, value }] }];
    const answer = await call(grpc, { domain, descriptors });
    const [status] = answer.statuses;
    return { allowed: answer.overallCode === OK, remaining: status?.limitRemaining ?? Number.NaN };
  };

const overResp: Door = async (key) => {
  const reply = (await resp.call("ALIQUOT.CHECK", "triple", key)) as number[];
  return { allowed: reply[0] === 0, remaining: reply[2] ?? Number.NaN };
};

async function forwarded(path: string, headers: Record<string, string> = {}): Promise<Verdict> {
  const answer = await sidecar.forward(`/v1/forward/${path}`, headers);
  const { ratelimit } = answer.headers;
  const remaining = /;r=(\d+)/.exec(String(ratelimit))?.[1];
  return { allowed: answer.status === 200, remaining: Number(remaining) };
}

const overForward: Door = (key) => forwarded(`@query/?v=${encodeURIComponent(key)}`);

/** Spends all three tokens, and sees that there is no fourth. */
async function drain(door: Door, key: string): Promise<void> {
  const seen: boolean[] = [];
  for (let i = 0; i < 4; i += 1) seen.push((await door(key)).allowed);
  expect(seen).toEqual([true, true, true, false]);
}

const DOORS: readonly (readonly [string, Door])[] = [
  ["HTTP", overHttp],
  ["gRPC", overGrpc("x", "user")],
  ["forward", overForward],
  ["RESP", overResp],
];

describe.each(DOORS)("O24 over %s, with a Redis", (name, door) => {
  // Limits are shared by the doors: each has keys of its own.
  const own = (key: string): string => `${name} ${key}`;

  it.each([
    ["v", "v\0"],
    ["a|b:c", "a:b|c"],
    ["*", "**"],
    ["foo\r\nDEL canary\r\n", "foo"],
    ['k\n{"level":"error"}', "k"],
  ])("%j and %j have buckets of their own", async (first, second) => {
    await drain(door, own(first));
    expect(await door(own(second))).toEqual({ allowed: true, remaining: 2 });
  });
});

describe("O24 kinds of identities, with a Redis", () => {
  it("a user and an address that read the same share no bucket over forward", async () => {
    await drain((value) => forwarded("@user", { "x-user": value }), "10.0.0.1");
    const address = await forwarded("@ip", { "x-forwarded-for": "10.0.0.1" });
    expect(address).toEqual({ allowed: true, remaining: 2 });
  });

  it("nor do two descriptors, or two domains that read the same when joined, over gRPC", async () => {
    await drain(overGrpc("x", "user"), "10.0.0.1");
    expect((await overGrpc("x", "ip")("10.0.0.1")).remaining).toBe(2);
    await drain(overGrpc("x", "y_z"), "");
    expect((await overGrpc("x_y", "z")("")).remaining).toBe(2);
  });
});

describe("O25 an address as a key", () => {
  it.each([
    ["HTTP", overHttp],
    ["gRPC", overGrpc("x", "ip")],
  ] as const)("is taken over %s as it is given, port and all", async (_, door) => {
    await drain(door, "203.0.113.7:51000");
    expect((await door("203.0.113.7:51001")).remaining).toBe(2);
    expect((await door("203.0.113.7:51000")).allowed).toBe(false);
  });
});

describe("O24 what keys leave behind", () => {
  it("is nothing in the log, and in Redis names that hold none of their bytes", async () => {
    await admin.set("canary", "alive");
    const linesBefore = sidecar.output.split("\n").length;
    const odd = ["*", "foo\r\nDEL canary\r\n", 'k\n{"level":"error"}', "canary", "\u009b31m"];
    for (const [, door] of DOORS) for (const key of odd) await door(`left ${key}`);
    expect(await admin.get("canary")).toBe("alive");
    const names = (await admin.keys("*")).filter((name) => name !== "canary");
    expect(names.length).toBeGreaterThan(10);
    for (const name of names) {
      expect(name).toMatch(/^aliquot:\{\d+\}:test:[\w:.%/=*@-]+$/);
      expect(name).not.toMatch(/canary|DEL|level/);
    }
    expect(sidecar.output.split("\n").length - linesBefore).toBeLessThanOrEqual(
      DOORS.length * odd.length,
    );
    expect(sidecar.output).not.toMatch(/[^\n\P{Cc}]/u);
    expect(sidecar.output).not.toContain("canary");
  });
});
